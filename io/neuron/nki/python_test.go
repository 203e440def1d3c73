package nki

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// python returns python3, or skips.
func python(t *testing.T) string {
	t.Helper()
	p, err := Python()
	if err != nil {
		t.Skip("python3 is not installed: kernels cannot be recorded here")
	}
	if out, err := exec.Command(p, "-c", "import sys; print(sys.version_info >= (3, 9))").Output(); err != nil || strings.TrimSpace(string(out)) != "True" {
		t.Skipf("%s is older than Python 3.9", p)
	}
	return p
}

// The package's own tests; those that start Python once per kernel run with
// PERFSIM_LONG=1, as .ci/run does.
func TestPythonPackage(t *testing.T) {
	t.Parallel()
	p := python(t)
	args := []string{"-B", "-m", "unittest", "discover", "-s", "pytest"}
	if os.Getenv("PERFSIM_LONG") == "" {
		args = append(args, "-k", "Symbols", "-k", "Indexing", "-k", "Arguments", "-k", "regular_loops", "-k", "lists_made")
	}
	cmd := exec.Command(p, args...)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
