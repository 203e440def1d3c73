package tarball

import (
	"os/exec"
	"testing"
)

// run runs a tool that reads or writes archives and returns what it prints;
// the test is skipped where the tool is absent.
func run(t *testing.T, tool string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(tool)
	if err != nil {
		t.Skipf("%s is not installed", tool)
	}
	out, err := exec.Command(path, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", tool, args, err, out)
	}
	return string(out)
}
