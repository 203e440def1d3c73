package cli

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the release this source is.
const version = "0.1.0"

func newVersionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "version", Short: "Tell which perfsim this is", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			v := struct {
				Version  string `json:"version"`
				Revision string `json:"revision,omitempty"` // commit that it was built from
				Go       string `json:"go"`                 // version of Go that built it
				Platform string `json:"platform"`           // operating system and architecture
			}{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			v.Revision = revision()
			if asJSON {
				return writeJSON(c.OutOrStdout(), v)
			}
			_, err := fmt.Fprintln(c.OutOrStdout(), versionText())
			return err
		}}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// versionText says which perfsim this is, in one line.
func versionText() string {
	r := revision()
	if r != "" {
		r = " (" + r[:min(len(r), 12)] + ")"
	}
	return fmt.Sprintf("perfsim %s%s %s %s/%s", version, r, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// revision returns the revision of the source that was built, "" where the
// build does not say.
func revision() string { return setting("vcs.revision") }

// setting returns what the build says under a key, "" where it does not.
func setting(key string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == key {
				return s.Value
			}
		}
	}
	return ""
}

// engineVersion names what predicts: results of one version are not those of
// another. A build without a revision, because the source was changed or the
// build does not say, is named by the digest of the program itself.
func engineVersion() (string, error) {
	if r := revision(); r != "" && setting("vcs.modified") != "true" {
		return version + "-" + r[:min(len(r), 12)], nil
	}
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("naming the engine's version: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("naming the engine's version: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("naming the engine's version: %s: %w", path, err)
	}
	return fmt.Sprintf("%s-build-%x", version, h.Sum(nil)[:6]), nil
}
