package hlo

import (
	"perfsim/components/opgraph"
)

// aliasEntry is "{output}: (number, {part}, kind)".
type aliasEntry struct {
	output, part opgraph.PathID
	number       int64
	must         bool
}

// aliasList takes "{ {0}: (0, {}, may-alias), … }".
func (p *parser) aliasList(each func(aliasEntry)) bool {
	if !p.expect('{', "before the aliases") {
		return false
	}
	for p.peek() != '}' {
		var e aliasEntry
		v, ok := p.intList()
		if !ok || !p.expect(':', "after the output of an alias") {
			return false
		}
		e.output = p.g.AddPath(v...)
		if p.accept('(') {
			if e.number, ok = p.int(); !ok || !p.expect(',', "in an alias") {
				return false
			}
			if v, ok = p.intList(); !ok {
				return false
			}
			e.part = p.g.AddPath(v...)
			if p.accept(',') {
				at := p.pos
				switch w := p.word(); w {
				case "must-alias", "must_alias":
					e.must = true
				case "may-alias", "may_alias":
				default:
					return p.failAt(at, "alias kind %q is neither may-alias nor must-alias", w)
				}
			}
			if !p.expect(')', "to end an alias") {
				return false
			}
		} else if e.number, ok = p.int(); !ok { // the form of old dumps
			return false
		}
		each(e)
		if !p.accept(',') {
			break
		}
	}
	return p.expect('}', "to end the aliases")
}

// aliases takes the input_output_alias of a module.
func (p *parser) aliases() bool {
	return p.aliasList(func(e aliasEntry) {
		p.g.Aliases = append(p.g.Aliases, opgraph.Alias{
			Output: e.output, Parameter: int32(min(max(e.number, -1), 1<<30)), Param: e.part, Must: e.must,
		})
	})
}

// outputAliasing takes the output_to_operand_aliasing of an instruction.
func (p *parser) outputAliasing(op opgraph.OpID) bool {
	var v []int64
	if !p.aliasList(func(e aliasEntry) { v = append(v, int64(e.output), e.number, int64(e.part)) }) {
		return false
	}
	p.g.SetInts(op, opgraph.AttrOutputAliasing, v...)
	return true
}
