package cli

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"perfsim": func() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs the scripts of testdata/script; each is a session of a
// person at a terminal.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			wd, err := os.Getwd()
			if err != nil {
				return err
			}
			env.Setenv("EXAMPLES", wd+"/../../../examples")
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name == "nats" {
				return !errors.Is(checkServe(&queueFlags{}), errNoQueue), nil
			}
			return false, fmt.Errorf("no condition is called %q", name)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			// freeport puts a port that nobody listens on into PORT.
			"freeport": func(ts *testscript.TestScript, _ bool, _ []string) {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				ts.Check(err)
				_, port, err := net.SplitHostPort(l.Addr().String())
				ts.Check(errors.Join(err, l.Close()))
				ts.Setenv("PORT", port)
			},
		},
	})
}
