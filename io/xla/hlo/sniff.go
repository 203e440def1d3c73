package hlo

import "strings"

// Sniff reports whether head begins an HLO text: a module header, or a
// computation as text without a header has it. Comments before it are
// skipped.
func Sniff(head []byte) bool {
	c := scanner{s: string(head)}
	c.ws()
	rest := c.s[c.pos:]
	if strings.HasPrefix(rest, "HloModule ") || strings.HasPrefix(rest, "HloModule\t") {
		return true
	}
	if entry, ok := strings.CutPrefix(rest, "ENTRY "); ok {
		rest = entry
	}
	// name (params) -> shape {   or   name {   and then an instruction.
	c = scanner{s: rest}
	if _, ok := c.name(); !ok {
		return false
	}
	if c.peek() == '(' {
		if _, ok := c.balanced(); !ok || !c.accept('-') || !c.accept('>') {
			return false
		}
		open := strings.Index(c.s[c.pos:], " {\n")
		if open < 0 {
			return false
		}
		c.pos += open
	}
	if !c.accept('{') {
		return false
	}
	if c.peek() == '"' {
		return false // JSON
	}
	name, ok := c.name()
	if ok && name == "ROOT" {
		_, ok = c.name()
	}
	return ok && c.accept('=')
}
