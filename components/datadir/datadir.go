// Package datadir finds the folder of real files that tests read. The files
// are not part of the project; a test that needs one skips, and says so,
// where the folder is absent.
package datadir

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns the path of a file or folder below ../shared/data (seen from
// the root of the repository, the nearest parent folder that holds go.mod).
// PERFSIM_DATA names another place. The test is skipped where the path does
// not exist.
func Path(t testing.TB, elem ...string) string {
	t.Helper()
	root := os.Getenv("PERFSIM_DATA")
	if root == "" {
		dir, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				break
			}
			up := filepath.Dir(dir)
			if up == dir {
				t.Skip("no go.mod above the working directory, so ../shared/data cannot be found")
			}
			dir = up
		}
		root = filepath.Join(dir, "..", "shared", "data")
	}
	p := filepath.Join(append([]string{root}, elem...)...)
	if _, err := os.Stat(p); err != nil {
		t.Skipf("real data is absent: %v", err)
	}
	return p
}
