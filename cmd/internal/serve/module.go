package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/io/format"
	"perfsim/io/neuron/nki"
	"perfsim/systems"
	"perfsim/systems/lower"
)

// input is one module that a request names.
type input struct {
	id, path, name string
	body           []byte
	what           string // for messages: "module_id", "module_id_b"
}

// settings returns what changes the prediction of a request.
func (s *Server) settings(q *request, operands bool) (systems.Settings, error) {
	set := systems.Settings{Machine: cmp.Or(q.Machine, s.opt.Machine), RebuildDeps: q.RebuildDeps, GraphModule: q.GraphModule, Graph: lower.DefaultOptions()}
	err := s.checkMachine(q.Machine)
	if err != nil {
		return set, err
	}
	if set.Model, err = components.ParseModel(q.Model); err != nil {
		return set, failf(http.StatusBadRequest, "model: %w", err)
	}
	if set.Loops, err = components.ParseLoops(q.Loops); err != nil {
		return set, failf(http.StatusBadRequest, "loops: %w", err)
	}
	g := &set.Graph
	g.Operands = operands
	if g.Trips, err = namedNumbers("trip_count", q.TripCount); err != nil {
		return set, err
	}
	if g.Dims, err = namedNumbers("dim", q.Dim); err != nil {
		return set, err
	}
	if q.Buffers < 0 || q.Buffers > lower.MostBuffers {
		return set, failf(http.StatusBadRequest, "buffers %d is not between 1 and %d", q.Buffers, lower.MostBuffers)
	}
	g.Buffers = cmp.Or(q.Buffers, g.Buffers)
	set.Kernel = format.KernelCall{Args: q.Arg, Grid: q.Grid}
	return set, nil
}

// variantKey is all that reading and lowering depend on besides the input, as
// text. For a module that is not lowered the machine and the options of
// lowering do not count.
func (q *request) variantKey(s *systems.Settings, lowered bool) string {
	k := []any{q.Format, q.GraphModule, s.RebuildDeps}
	if lowered {
		k = append(k, s.Machine, s.Graph.Operands, s.Graph.Buffers, s.Graph.Trips, s.Graph.Dims, q.Arg, q.Grid)
	}
	b, err := json.Marshal(k)
	if err != nil {
		panic(err) // strings, numbers and maps of them
	}
	return string(b)
}

// load returns the module of an input, ready for predictions, and its id. It
// is held from then on.
func (s *Server) load(ctx context.Context, q *request, in input, set systems.Settings) (*systems.Loaded, string, error) {
	m, err := s.find(ctx, q, in)
	if err != nil {
		return nil, "", err
	}
	plain, lowered := q.variantKey(&set, false), q.variantKey(&set, true)
	for _, k := range []string{plain, lowered} {
		if l := m.variant(k); l != nil {
			s.held.put(m)
			return l, m.id, nil
		}
	}
	r := systems.Reading{Jobs: 1, Format: q.Format, NoExecute: true}
	switch {
	case m.source != "":
		r.Path, r.NoExecute = m.source, false
	case q.Format == nki.SourceImporter.Name && s.opt.AllowPython:
		path, remove, err := saveSource(m.body)
		if err != nil {
			return nil, "", err
		}
		defer remove()
		r.Path, r.NoExecute = path, false
	default:
		src, err := format.OpenBytes(ctx, m.name, m.body, s.opt.MaxUnwrapped)
		if err != nil {
			return nil, "", err
		}
		defer src.Close()
		r.Source = src
	}
	l, err := systems.Load(ctx, &r, set)
	if err != nil {
		return nil, "", err
	}
	if err := l.Prepare(ctx, 1); err != nil {
		return nil, "", err
	}
	k := plain
	if l.Lowered() {
		k = lowered
	}
	m.keep(k, l)
	s.held.put(m)
	return l, m.id, nil
}

// find returns the input, from those that are held where it is among them.
func (s *Server) find(ctx context.Context, q *request, in input) (*heldModule, error) {
	given := 0
	for _, there := range []bool{in.id != "", in.path != "", in.body != nil} {
		if there {
			given++
		}
	}
	if given != 1 {
		return nil, failf(http.StatusBadRequest, "the module is missing, or there more than once: send it as the body, or name it by %s or by a path", in.what)
	}
	if in.id != "" {
		if m := s.held.get(in.id); m != nil {
			return m, nil
		}
		return nil, failf(http.StatusNotFound, "%s %q is not held (any more): send the module", in.what, in.id)
	}
	m := &heldModule{name: cmp.Or(in.name, in.path, "request"), body: in.body}
	if in.path != "" {
		var err error
		if m.body, m.source, err = s.read(ctx, in.path); err != nil {
			return nil, err
		}
	}
	if len(m.body) == 0 {
		return nil, failf(http.StatusBadRequest, "the module is empty")
	}
	m.id = digest(m.body)
	if _, function, ok := nki.IsSource(in.path); ok && function != "" {
		m.id += ":" + function
	}
	if h := s.held.get(m.id); h != nil {
		return h, nil
	}
	return m, nil
}

// read returns the bytes of a file below one of the roots, and for a kernel
// source that may be executed its real path with the function.
func (s *Server) read(ctx context.Context, path string) (body []byte, source string, err error) {
	if len(s.opt.Roots) == 0 {
		return nil, "", failf(http.StatusForbidden, "path %q: the server was started without a root", path)
	}
	file, function, python := nki.IsSource(path)
	var reason error
	for _, root := range s.opt.Roots {
		rel := file
		if filepath.IsAbs(file) {
			abs, err := filepath.Abs(root)
			if err != nil {
				return nil, "", err
			}
			if rel, err = filepath.Rel(abs, file); err != nil {
				continue
			}
		}
		body, err := s.readBelow(root, rel)
		if err != nil {
			if reason == nil || !errors.Is(err, os.ErrNotExist) {
				reason = err
			}
			continue
		}
		if !python {
			return body, "", nil
		}
		if !s.opt.AllowPython {
			return nil, "", failf(http.StatusForbidden, "path %q: a kernel source is executed to be read, and the server was started without --allow-python", path)
		}
		real, err := filepath.EvalSymlinks(filepath.Join(root, rel))
		if err != nil {
			return nil, "", err
		}
		if function != "" {
			real += ":" + function
		}
		return body, real, nil
	}
	var f *failure
	switch {
	case errors.As(reason, &f):
		return nil, "", reason
	case errors.Is(reason, os.ErrNotExist):
		return nil, "", failf(http.StatusNotFound, "path %q: no such file below a root", path)
	}
	// The answer leaves the reason out: it would say what lies outside the roots.
	return nil, "", failf(http.StatusForbidden, "path %q is not a file that can be read below a root", path)
}

// readBelow reads the regular file rel below root; links that lead out of root
// are not followed.
func (s *Server) readBelow(root, rel string) ([]byte, error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	st, err := dir.Stat(rel)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", rel)
	}
	f, err := dir.Open(rel)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, s.opt.MaxBody+1))
	if err == nil && int64(len(body)) > s.opt.MaxBody {
		err = failf(http.StatusRequestEntityTooLarge, "path %q: the file has more than %d bytes", rel, s.opt.MaxBody)
	}
	return body, err
}

// saveSource writes a kernel source to a file that can be executed.
func saveSource(body []byte) (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "perfsim-serve-")
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, "kernel.py")
	if err := os.WriteFile(path, body, 0o600); err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	return path, func() { os.RemoveAll(dir) }, nil
}

// checkMachine refuses what is no embedded machine and not the server's own: a
// request must not have the server read files.
func (s *Server) checkMachine(name string) error {
	if name == "" || name == s.opt.Machine {
		return nil
	}
	if _, err := machine.Embedded(name); err != nil {
		return failf(http.StatusBadRequest, "%w", err)
	}
	return nil
}

// machine returns the machine called name, for "" the one that module m is
// for. Machines are shared by requests.
func (s *Server) machine(name string, m *components.Module) (*machine.Machine, error) {
	key := name
	if name == "" {
		key = "for " + m.Arch
	}
	if got, ok := s.machines.Load(key); ok {
		return got.(*machine.Machine), nil
	}
	got, err := (&systems.Settings{Machine: name}).MachineOf(m)
	if err != nil {
		return nil, err
	}
	s.machines.Store(key, got)
	return got, nil
}
