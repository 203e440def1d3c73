package cli

import "testing"

// Every command is found under the name it is registered with, with and
// without the others.
func TestCommandNames(t *testing.T) {
	all := newRoot(nil)
	if got, want := len(all.Commands()), len(commands()); got != want {
		t.Errorf("%d commands, want %d", got, want)
	}
	for _, c := range commands() {
		if got := c.make().Name(); got != c.name {
			t.Errorf("command %s is registered as %s", got, c.name)
		}
		alone := newRoot([]string{c.name, "--help"})
		if len(alone.Commands()) != 1 || alone.Commands()[0].Name() != c.name {
			t.Errorf("%s makes %d commands", c.name, len(alone.Commands()))
		}
	}
}
