// Command perfsim-man writes the manual pages of all commands of perfsim to a
// folder. It is a program of its own because what it needs would take a tenth
// of the time in which perfsim starts.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra/doc"

	"perfsim/cmd/internal/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: perfsim-man DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "perfsim-man: %v\n", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root := cli.Root()
	root.DisableAutoGenTag = true // the date of the day it ran
	epoch := time.Unix(0, 0).UTC()
	return doc.GenManTree(root, &doc.GenManHeader{Title: "PERFSIM", Section: "1", Source: root.Version, Date: &epoch}, dir)
}
