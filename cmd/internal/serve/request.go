package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"perfsim/systems/change"
)

// request is one question. Over HTTP its fields are the parameters of the URL
// and, where the module is the body, no more; in a JSON line they are keys.
// The tag doc is the description of a field, of says which calls take it where
// not all do, and in which of URL and line it stands where not in both.
type request struct {
	ID         json.RawMessage `json:"id,omitempty" in:"line" doc:"any JSON value; the answer gives it back"`
	Call       string          `json:"call,omitempty" in:"line" doc:"predict, explain, whatif or diff"`
	Body       *string         `json:"body,omitempty" in:"line" doc:"the module, where it is text"`
	BodyBase64 []byte          `json:"body_base64,omitempty" in:"line" doc:"the module in base64, where it is not text"`
	Changes    []change.Change `json:"changes,omitempty" in:"line" doc:"instructions with other work or costs than in the module"`

	ModuleID string `json:"module_id,omitempty" doc:"a module that the server holds, as an earlier answer names it, in place of a body"`
	Path     string `json:"path,omitempty" doc:"a file below one of the server's roots, in place of a body; for kernel sources also FILE.py:FUNCTION"`
	Name     string `json:"name,omitempty" doc:"name of the input in the answer and in messages"`

	Machine     string   `json:"machine,omitempty" doc:"machine by name; default: what the module was made for, else trn2"`
	Model       string   `json:"model,omitempty" doc:"reference, calibrated or replay; default: as the command run chooses"`
	Loops       string   `json:"loops,omitempty" doc:"once or trips; default: what the module asks for, else once"`
	Format      string   `json:"format,omitempty" doc:"format of the module instead of looking at what it holds"`
	GraphModule string   `json:"module,omitempty" doc:"the graph to take where an input has several, by name or as #N"`
	RebuildDeps bool     `json:"rebuild_deps,omitempty" doc:"derive all dependencies from access patterns"`
	Buffers     int      `json:"buffers,omitempty" doc:"graphs: tiles of a streamed value that are on chip at once"`
	TripCount   []string `json:"trip_count,omitempty" doc:"graphs: NAME=N, trip count of a while; may be repeated"`
	Dim         []string `json:"dim,omitempty" doc:"graphs: NAME.I=N, size of an open dimension; may be repeated"`
	Arg         []string `json:"arg,omitempty" doc:"kernel sources: an argument of the kernel; may be repeated"`
	Grid        string   `json:"grid,omitempty" doc:"kernel sources: launch grid, as 2 or 4,2"`

	Causes *int `json:"causes,omitempty" of:"predict" doc:"causes in the answer, 3 where absent, 0 for none"`

	Top    int    `json:"top,omitempty" of:"explain,whatif" doc:"rows of every list of an explanation; elasticities in the answer"`
	FromNS *int   `json:"from_ns,omitempty" of:"explain" doc:"only the time from this moment on"`
	ToNS   *int   `json:"to_ns,omitempty" of:"explain" doc:"only the time before this moment"`
	Block  string `json:"block,omitempty" of:"explain" doc:"only one top-level block, as BLOCK or FUNCTION/BLOCK"`

	Set        []string `json:"set,omitempty" of:"whatif" doc:"an assignment NAME=VALUE as for the command whatif; may be repeated, all combinations are predicted"`
	Elasticity bool     `json:"elasticity,omitempty" of:"whatif" doc:"which parameters matter, in place of assignments"`

	ModuleIDB string   `json:"module_id_b,omitempty" of:"diff" doc:"the module of side B; default: that of A"`
	PathB     string   `json:"path_b,omitempty" of:"diff" doc:"the file of side B; default: that of A"`
	MachineB  string   `json:"machine_b,omitempty" of:"diff" doc:"machine of side B; default: that of A"`
	ModelB    string   `json:"model_b,omitempty" of:"diff" doc:"model of side B; default: that of A"`
	A         string   `json:"a,omitempty" of:"diff" doc:"what side A is: measured, predicted or auto"`
	B         string   `json:"b,omitempty" of:"diff" doc:"what side B is: measured, predicted or auto"`
	Match     string   `json:"match,omitempty" of:"diff" doc:"match instructions by work, id, name, order or auto"`
	Align     string   `json:"align,omitempty" of:"diff" doc:"lay the sides over one another at kernel, start or none"`
	Threshold *float64 `json:"threshold_ns,omitempty" of:"diff" doc:"difference of starts in ns from which the timelines count as parted"`
	Worst     *int     `json:"worst,omitempty" of:"diff" doc:"rows of the largest differences"`

	// body is the module, nil where none was sent.
	body []byte
}

// fields lists the fields that call takes, of a line or of a URL.
func fields(call string, line bool) []reflect.StructField {
	var out []reflect.StructField
	for f := range reflect.TypeFor[request]().Fields() {
		of := f.Tag.Get("of")
		switch {
		case !f.IsExported() || !line && f.Tag.Get("in") == "line":
		case call != "" && of != "" && !strings.Contains(","+of+",", ","+call+","):
		default:
			out = append(out, f)
		}
	}
	return out
}

// key is the name of a field in a request.
func key(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// fromLine reads a JSON line.
func fromLine(line []byte) (*request, error) {
	q := &request{}
	if err := strict(line, q); err != nil {
		// By the id a client knows which request failed.
		var id struct {
			ID json.RawMessage `json:"id"`
		}
		if json.Unmarshal(line, &id) == nil {
			q = &request{ID: id.ID}
		} else {
			q = &request{}
		}
		return q, failf(http.StatusBadRequest, "the line is no request: %w", err)
	}
	if q.Body != nil && q.BodyBase64 != nil {
		return q, failf(http.StatusBadRequest, "body and body_base64 are both there")
	}
	if q.Body != nil {
		q.body = []byte(*q.Body)
	} else {
		q.body = q.BodyBase64
	}
	if err := q.takes(); err != nil {
		return q, err
	}
	return q, nil
}

// takes fails where the request has fields that its call does not take.
func (q *request) takes() error {
	v := reflect.ValueOf(q).Elem()
	for f := range v.Type().Fields() {
		of := f.Tag.Get("of")
		if of != "" && !strings.Contains(","+of+",", ","+q.Call+",") && !v.FieldByIndex(f.Index).IsZero() {
			return failf(http.StatusBadRequest, "%s does not take %q", q.Call, key(f))
		}
	}
	return nil
}

// fromURL reads the parameters of a URL.
func fromURL(call, query string) (*request, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, failf(http.StatusBadRequest, "the parameters of the URL: %w", err)
	}
	q := &request{Call: call}
	v := reflect.ValueOf(q).Elem()
	known := map[string]reflect.StructField{}
	for _, f := range fields(call, false) {
		known[key(f)] = f
	}
	for name, list := range values {
		f, ok := known[name]
		if !ok {
			return nil, failf(http.StatusBadRequest, "%s takes no parameter %q", call, name)
		}
		if err := assign(v.FieldByIndex(f.Index), list); err != nil {
			return nil, failf(http.StatusBadRequest, "the parameter %s: %w", name, err)
		}
	}
	return q, nil
}

// assign gives a field the values of a parameter.
func assign(v reflect.Value, list []string) error {
	if v.Kind() == reflect.Slice {
		v.Set(reflect.ValueOf(list))
		return nil
	}
	if len(list) != 1 {
		return errors.New("it is there more than once")
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	text := list[0]
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		v.SetBool(b)
	case reflect.Int:
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return fmt.Errorf("%q is no whole number", text)
		}
		v.SetInt(n)
	case reflect.Float64:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("%q is no number", text)
		}
		v.SetFloat(x)
	default:
		return fmt.Errorf("a %v is no parameter", v.Kind())
	}
	return nil
}

// delta is the body of a request about a module that is not its body.
type delta struct {
	Changes []change.Change `json:"changes"`
}

// takeBody makes the body of an HTTP request the module, or where the request
// names one, the changes to it.
func (q *request) takeBody(body []byte) error {
	if q.ModuleID == "" && q.Path == "" {
		q.body = body
		return nil
	}
	if len(body) == 0 {
		return nil
	}
	var d delta
	if err := strict(body, &d); err != nil {
		return failf(http.StatusBadRequest, "with module_id or path the body is empty or {\"changes\": [...]}: %w", err)
	}
	q.Changes = d.Changes
	return nil
}

// strict decodes one JSON value and refuses keys that v does not have.
func strict(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something stands behind the value")
	}
	return nil
}

// namedNumbers reads the values NAME=N of a parameter.
func namedNumbers(name string, list []string) (map[string]int64, error) {
	out := map[string]int64{}
	for _, t := range list {
		key, text, _ := strings.Cut(t, "=")
		n, err := strconv.ParseInt(text, 10, 64)
		if key == "" || err != nil || n < 0 {
			return nil, failf(http.StatusBadRequest, "%s %q is not NAME=N with N at least 0", name, t)
		}
		out[key] = n
	}
	return out, nil
}
