package hlo

import (
	"perfsim/components/opgraph"
)

// stackTables are the tables before the first computation of recent dumps:
// they say which place in the user's program a stack_frame_id is.
type stackTables struct {
	files, functions map[int64]opgraph.StrID
	places           map[int64]opgraph.StackFrame
}

// stackTables takes the tables FileNames, FunctionNames, FileLocations and
// StackFrames, each optional.
func (p *parser) stackTables() bool {
	for {
		var ok bool
		switch {
		case p.isTable("FileNames"):
			p.tables.files, ok = p.nameTable()
		case p.isTable("FunctionNames"):
			p.tables.functions, ok = p.nameTable()
		case p.isTable("FileLocations"):
			ok = p.places()
		case p.isTable("StackFrames"):
			ok = p.frames()
		default:
			return true
		}
		if !ok {
			return false
		}
	}
}

// isTable takes the title of a table if it is one: a computation may have the
// same name, a row number distinguishes them.
func (p *parser) isTable(title string) bool {
	if !p.isWord(title) {
		return false
	}
	save := p.pos
	p.pos += len(title)
	if b := p.peek(); b-'0' <= 9 {
		return true
	}
	// An empty table: another title or the first computation follows.
	for _, next := range []string{"FunctionNames", "FileLocations", "StackFrames"} {
		if p.isWord(next) {
			return true
		}
	}
	p.pos = save
	return false
}

// row takes the number of a row if one is next.
func (p *parser) row() (id int64, more, ok bool) {
	if p.peek()-'0' > 9 {
		return 0, false, true
	}
	id, ok = p.int()
	return id, true, ok
}

func (p *parser) nameTable() (map[int64]opgraph.StrID, bool) {
	t := map[int64]opgraph.StrID{}
	for {
		id, more, ok := p.row()
		if !ok || !more {
			return t, ok
		}
		v, ok := p.quoted()
		if !ok {
			return nil, false
		}
		t[id] = p.g.Str(v)
	}
}

// fields takes "{key=1 key=2}" and calls f for each.
func (p *parser) fields(f func(key string, v int64)) bool {
	if !p.expect('{', "before the fields of a row") {
		return false
	}
	for !p.accept('}') {
		key := p.word()
		if key == "" {
			return p.fail("expected a field, found %s", p.found())
		}
		if !p.expectAfter('=', "after field", key) {
			return false
		}
		v, ok := p.int()
		if !ok {
			return false
		}
		f(key, v)
		p.accept(',')
	}
	return true
}

func (p *parser) places() bool {
	p.tables.places = map[int64]opgraph.StackFrame{}
	for {
		id, more, ok := p.row()
		if !ok || !more {
			return ok
		}
		var f opgraph.StackFrame
		if !p.fields(func(key string, v int64) {
			switch key {
			case "file_name_id":
				f.File = p.tables.files[v]
			case "function_name_id":
				f.Function = p.tables.functions[v]
			case "line":
				f.Line = uint32(v)
			case "end_line":
				f.EndLine = uint32(v)
			case "column":
				f.Column = uint32(v)
			case "end_column":
				f.EndCol = uint32(v)
			}
		}) {
			return false
		}
		p.tables.places[id] = f
	}
}

// maxFrames bounds the table: rows are numbered without gaps in dumps.
const maxFrames = 1 << 24

func (p *parser) frames() bool {
	for {
		at := p.pos
		id, more, ok := p.row()
		if !ok || !more {
			return ok
		}
		if id != int64(len(p.g.Frames))+1 || id > maxFrames {
			return p.failAt(at, "stack frame %d does not follow frame %d", id, len(p.g.Frames))
		}
		var f opgraph.StackFrame
		if !p.fields(func(key string, v int64) {
			switch key {
			case "file_location_id":
				parent := f.Parent
				f = p.tables.places[v]
				f.Parent = parent
			case "parent_frame_id":
				// Printed one higher than the frame it means, so that 1 is
				// "none" (frame n+1 of a fresh chain says n+1).
				if v > 1 && v <= id {
					f.Parent = uint32(v - 1)
				}
			}
		}) {
			return false
		}
		p.g.Frames = append(p.g.Frames, f)
	}
}
