package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"perfsim/systems/sweep"
)

// notOptions are flags of commands that read a module which a choice of
// options cannot have: those with lists of their own in a sweep, and those that
// change no prediction.
var notOptions = []string{"machine", "model", "jobs", "quiet", "help"}

// resolveOptions reads options of a sweep by the flags of run.
func resolveOptions(options []string) (sweep.Choice, error) {
	var in inputFlags
	c := &cobra.Command{Use: "sweep"}
	in.add(c)
	for _, o := range options {
		name, value, has := strings.Cut(strings.TrimLeft(o, "-"), "=")
		x := c.Flags().Lookup(name)
		if x == nil || slices.Contains(notOptions, name) {
			return sweep.Choice{}, usageError{withNames(&sweepOptionError{fmt.Sprintf("option %q of the sweep is none of run's flags that change a prediction", name), optionNames(c)})}
		}
		if !has {
			if value = x.NoOptDefVal; value == "" {
				return sweep.Choice{}, usagef("option %q of the sweep has no value: write %s=VALUE", o, name)
			}
		}
		if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		if err := c.Flags().Set(name, value); err != nil {
			return sweep.Choice{}, usageError{fmt.Errorf("option %s of the sweep: %w", o, err)}
		}
	}
	if err := in.check(); err != nil {
		return sweep.Choice{}, err
	}
	return sweep.Choice{Reading: in.reading(c, "", &progress{}), Settings: in.settings, Check: in.refuseGraphFlags}, nil
}

// sweepOptionError is an error about an unknown option.
type sweepOptionError struct {
	text  string
	names []string
}

func (e *sweepOptionError) Error() string        { return e.text }
func (e *sweepOptionError) KnownNames() []string { return e.names }

func optionNames(c *cobra.Command) (names []string) {
	c.Flags().VisitAll(func(x *pflag.Flag) {
		if !slices.Contains(notOptions, x.Name) {
			names = append(names, x.Name)
		}
	})
	return names
}
