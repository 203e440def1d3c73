package cli

import (
	"fmt"
	"io"
	"strings"
)

// sayf is fmt.Fprintf for text that people read: a line end within a string
// that it prints, which only a name of the input has, is shown as \n, so that
// no name makes a line of its own. The format has the line ends that are meant.
func sayf(w io.Writer, format string, args ...any) (int, error) {
	return fmt.Fprintf(w, format, onLine(args)...)
}

func onLine(args []any) []any {
	for i, a := range args {
		if s, ok := a.(string); ok && strings.Contains(s, "\n") {
			args[i] = strings.ReplaceAll(s, "\n", `\n`)
		}
	}
	return args
}
