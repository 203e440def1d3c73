// Package shard splits work between processes that know nothing of each
// other: every one takes its part by its number.
package shard

import (
	"fmt"
	"strconv"
	"strings"
)

// Shard is part I of N, from 1 on.
type Shard struct{ I, N int }

// most bounds the number of parts.
const most = 1 << 20

// Parse reads I/N. "auto/N", or "auto" alone for a Slurm array, takes the
// number from the environment: JOB_COMPLETION_INDEX of a Kubernetes Indexed
// Job, from 0 on, or SLURM_ARRAY_TASK_ID, from SLURM_ARRAY_TASK_MIN on in steps
// of SLURM_ARRAY_TASK_STEP.
func Parse(text string, getenv func(string) string) (Shard, error) {
	left, right, hasN := strings.Cut(text, "/")
	s := Shard{}
	var err error
	if hasN {
		if s.N, err = strconv.Atoi(right); err != nil {
			return s, fmt.Errorf("%q: %q is no number of parts", text, right)
		}
	}
	if left != "auto" {
		if !hasN {
			return s, fmt.Errorf("%q is not I/N, auto/N or auto", text)
		}
		if s.I, err = strconv.Atoi(left); err != nil {
			return s, fmt.Errorf("%q: %q is no number of a part", text, left)
		}
	} else if err := s.fromEnvironment(getenv); err != nil {
		return s, fmt.Errorf("%q: %w", text, err)
	}
	if s.N < 1 || s.N > most || s.I < 1 || s.I > s.N {
		return s, fmt.Errorf("%q: part %d of %d is not one from 1 to the number of parts", text, s.I, s.N)
	}
	return s, nil
}

// fromEnvironment fills the number of the part, and of all where it is 0.
func (s *Shard) fromEnvironment(getenv func(string) string) error {
	number := func(name string, missing int) (int, error) {
		v := getenv(name)
		if v == "" && missing >= 0 {
			return missing, nil
		}
		n, err := strconv.Atoi(v)
		if err != nil {
			return 0, fmt.Errorf("%s is %q and no number", name, v)
		}
		return n, nil
	}
	switch {
	case getenv("JOB_COMPLETION_INDEX") != "":
		n, err := number("JOB_COMPLETION_INDEX", -1)
		if err != nil {
			return err
		}
		if s.N == 0 {
			return fmt.Errorf("a Kubernetes Indexed Job does not give its number of completions; write auto/N")
		}
		s.I = n + 1
	case getenv("SLURM_ARRAY_TASK_ID") != "":
		id, err := number("SLURM_ARRAY_TASK_ID", -1)
		if err != nil {
			return err
		}
		least, err := number("SLURM_ARRAY_TASK_MIN", 0)
		if err != nil {
			return err
		}
		step, err := number("SLURM_ARRAY_TASK_STEP", 1)
		if err != nil {
			return err
		}
		if s.N == 0 {
			if s.N, err = number("SLURM_ARRAY_TASK_COUNT", -1); err != nil {
				return err
			}
		}
		s.I = (id-least)/max(step, 1) + 1
	default:
		return fmt.Errorf("neither JOB_COMPLETION_INDEX nor SLURM_ARRAY_TASK_ID is set")
	}
	return nil
}

// Range returns the first of n pieces of work that the shard takes, and the
// end. Neighbours stay together, because they share work.
func (s Shard) Range(n int) (from, to int) {
	return n * (s.I - 1) / s.N, n * s.I / s.N
}
