package profilelog

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"

	"perfsim/components/zonelog"
)

// Source is one zone of zone_src_locations.log.
type Source struct {
	Name, File string
	Line       uint32
	Text       string // NAME,FILE,LINE,KERNEL_PROFILER: what is hashed
	ID         uint16
}

// Collision is two zones with one id: their times cannot be distinguished in
// a device log.
type Collision struct{ A, B Source }

// Sources resolves zone ids to names.
type Sources struct {
	byID       map[uint16]Source
	list       []Source
	Collisions []Collision
	Skipped    uint64 // lines that are not zone notes
}

const pragma = "#pragma message: "

// ReadSources reads zone_src_locations.log or new_zone_src_locations.log:
// one compiler note a line, with repeats. Of two zones with one id the first
// keeps it and the pair is reported, as one collision must not take the names
// of all other zones away.
func ReadSources(r io.Reader) (*Sources, error) {
	s := &Sources{byID: map[uint16]Source{}}
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 64<<10), maxLine)
	seen := map[string]bool{}
	for sc.Scan() {
		line := sc.Bytes()
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		z, ok := parseSource(string(line))
		if !ok {
			s.Skipped++
			continue
		}
		if seen[z.Text] {
			continue
		}
		seen[z.Text] = true
		s.add(z)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("zone source locations: %w", err)
	}
	sort.Slice(s.list, func(i, j int) bool { return s.list[i].Text < s.list[j].Text })
	return s, nil
}

// NewSources makes the table of a set of texts "NAME,FILE,LINE,KERNEL_PROFILER".
func NewSources(texts ...string) (*Sources, error) {
	s := &Sources{byID: map[uint16]Source{}}
	for _, t := range texts {
		z, ok := parseSource(pragma + t)
		if !ok {
			return nil, fmt.Errorf("%q is not NAME,FILE,LINE,KERNEL_PROFILER", t)
		}
		s.add(z)
	}
	return s, nil
}

func (s *Sources) add(z Source) {
	s.list = append(s.list, z)
	if old, ok := s.byID[z.ID]; ok {
		s.Collisions = append(s.Collisions, Collision{old, z})
		return
	}
	s.byID[z.ID] = z
}

// parseSource finds the text of a note. The name may hold commas, so the
// text is taken apart from the right.
func parseSource(line string) (Source, bool) {
	i := strings.Index(line, pragma)
	if i < 0 {
		return Source{}, false
	}
	text := strings.TrimRight(line[i+len(pragma):], "\r\n ")
	text = strings.TrimSuffix(text, "'")
	text = strings.TrimSuffix(text, "’")
	body, ok := strings.CutSuffix(text, ",KERNEL_PROFILER")
	if !ok {
		return Source{}, false
	}
	j := strings.LastIndexByte(body, ',')
	if j < 0 {
		return Source{}, false
	}
	n, err := strconv.ParseUint(body[j+1:], 10, 32)
	if err != nil {
		return Source{}, false
	}
	k := strings.LastIndexByte(body[:j], ',')
	if k < 0 {
		return Source{}, false
	}
	return Source{Name: body[:k], File: body[k+1 : j], Line: uint32(n), Text: text, ID: zonelog.ZoneHash16(text)}, true
}

// Lookup returns the zone of a 16-bit id.
func (s *Sources) Lookup(id uint32) (Source, bool) {
	if s == nil || id > 0xFFFF {
		return Source{}, false
	}
	z, ok := s.byID[uint16(id)]
	return z, ok
}
