package stablehlo

import "perfsim/components/opgraph"

// nameID is the row of a value's name; 0 is no name.
type nameID uint32

// names interns the names of values.
type names struct {
	ids      map[string]nameID
	numbered []nameID // ids of the names 0, 1, 2, …, which most values have
	text     []string
}

// newNames makes room for the names of a text of so many bytes: an operation
// takes about a hundred.
func newNames(size int) names {
	n := size/128 + 1
	return names{ids: map[string]nameID{"": 0}, numbered: make([]nameID, 0, n), text: append(make([]string, 0, n), "")}
}

// maxNumbered bounds the numbers that have a row of their own.
const maxNumbered = 1 << 20

// name returns the name of an id, without '%'.
func (n *names) name(id nameID) string { return n.text[id] }

// valueName takes the name of a value after its '%', 0 when there is none.
func (p *parser) valueName() nameID {
	word := p.word()
	if n, ok := numberOf(word); ok {
		for len(p.numbered) <= n {
			p.numbered = append(p.numbered, 0)
		}
		if p.numbered[n] == 0 {
			p.numbered[n] = p.names.add(word)
		}
		return p.numbered[n]
	}
	id, ok := p.ids[word]
	if !ok {
		id = p.names.add(word)
		p.ids[word] = id
	}
	return id
}

func (n *names) add(word string) nameID {
	n.text = append(n.text, word)
	return nameID(len(n.text) - 1)
}

// numberOf returns the number that a word is, in its shortest form.
func numberOf(word string) (n int, ok bool) {
	if word == "" || word[0] == '0' && len(word) > 1 {
		return 0, false
	}
	for i := range len(word) {
		if !isDigit(word[i]) {
			return 0, false
		}
		if n = n*10 + int(word[i]-'0'); n >= maxNumbered {
			return 0, false
		}
	}
	return n, true
}

// env holds the operators of the values of one computation, by name.
type env struct {
	of    []binding
	round uint32 // computations begun; bindings of others are not valid
}

// binding is what a name stands for: one operator, or one a result.
type binding struct {
	round uint32
	one   opgraph.OpID
	list  []opgraph.OpID
}

// reset forgets all bindings and makes room for names.
func (e *env) reset(names int) {
	if e.round++; len(e.of) < names {
		e.of = append(e.of, make([]binding, names-len(e.of))...)
	}
}

// define binds a name, false where it is bound already.
func (e *env) define(name nameID, b binding) bool {
	if e.of[name].round == e.round {
		return false
	}
	b.round = e.round
	e.of[name] = b
	return true
}

// value returns the operator of a value, NoOp where it is not bound.
func (e *env) value(u ref) opgraph.OpID {
	switch b := &e.of[u.name]; {
	case b.round != e.round:
	case b.list == nil && u.i == 0:
		return b.one
	case int(u.i) < len(b.list):
		return b.list[u.i]
	}
	return opgraph.NoOp
}

// bindOne binds one result of a name; others of it may follow.
func (e *env) bindOne(u ref, op opgraph.OpID) {
	b := &e.of[u.name]
	if b.round != e.round {
		*b = binding{round: e.round}
	} else if b.list == nil {
		b.list = []opgraph.OpID{b.one}
	}
	for len(b.list) <= int(u.i) {
		b.list = append(b.list, opgraph.NoOp)
	}
	b.list[u.i] = op
}
