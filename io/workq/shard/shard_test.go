package shard

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"perfsim/io/workq"
	"perfsim/io/workq/local"
	"perfsim/io/workq/workqtest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, env, want string // "!" and a part of the error
	}{
		{"1/8", "", "1/8"}, {"8/8", "", "8/8"}, {"0/8", "", "!not one from 1"}, {"9/8", "", "!not one from 1"},
		{"1", "", "!not I/N"}, {"x/8", "", "!no number of a part"}, {"1/x", "", "!no number of parts"}, {"1/0", "", "!not one from 1"},
		{"auto/8", "JOB_COMPLETION_INDEX=0", "1/8"}, {"auto/8", "JOB_COMPLETION_INDEX=7", "8/8"},
		{"auto/8", "JOB_COMPLETION_INDEX=8", "!not one from 1"}, {"auto", "JOB_COMPLETION_INDEX=0", "!auto/N"},
		{"auto", "SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_COUNT=8", "3/8"},
		{"auto", "SLURM_ARRAY_TASK_ID=0 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_COUNT=8", "1/8"},
		{"auto", "SLURM_ARRAY_TASK_ID=12 SLURM_ARRAY_TASK_MIN=10 SLURM_ARRAY_TASK_STEP=2 SLURM_ARRAY_TASK_COUNT=4", "2/4"},
		{"auto/4", "SLURM_ARRAY_TASK_ID=2", "3/4"}, {"auto", "SLURM_ARRAY_TASK_ID=x", "!no number"}, {"auto/4", "", "!neither"},
	} {
		env := map[string]string{}
		for _, kv := range strings.Fields(c.env) {
			k, v, _ := strings.Cut(kv, "=")
			env[k] = v
		}
		s, err := Parse(c.text, func(name string) string { return env[name] })
		if want, bad := strings.CutPrefix(c.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s with %q: %v, want an error with %q", c.text, c.env, err, want)
			}
		} else if err != nil || fmt.Sprintf("%d/%d", s.I, s.N) != want {
			t.Errorf("%s with %q: %v %v, want %s", c.text, c.env, s, err, want)
		}
	}
}

// Every piece of work belongs to exactly one part, and parts differ by one at
// most.
func TestRange(t *testing.T) {
	t.Parallel()
	for n := range 40 {
		for parts := 1; parts <= 12; parts++ {
			at := 0
			for i := 1; i <= parts; i++ {
				from, to := Shard{i, parts}.Range(n)
				if from != at || to-from > n/parts+1 || to-from < n/parts {
					t.Fatalf("part %d/%d of %d: %d to %d, the one before ends at %d", i, parts, n, from, to, at)
				}
				at = to
			}
			if at != n {
				t.Fatalf("%d parts of %d end at %d", parts, n, at)
			}
		}
	}
}

// rig runs the parts one after the other, each as a process of its own would:
// what a part leaves undone when it dies, it does when it starts again.
type rig struct{ room int }

func (r rig) Run(ctx context.Context, do workq.Do, tasks []workq.Task, take func([]workq.Result) error) error {
	tasks = workq.Once(tasks)
	for i := 1; i <= 3; i++ {
		from, to := Shard{i, 3}.Range(len(tasks))
		if err := (&local.Queue{Jobs: 2, Room: r.room, Do: do}).Run(ctx, tasks[from:to], take); err != nil {
			return err
		}
	}
	return nil
}

func (rig) Die(context.Context)   { panic("killed") }
func (rig) Stall(context.Context) {}

func TestConformance(t *testing.T) {
	t.Parallel()
	workqtest.Run(t, func(_ *testing.T, room int) workqtest.Rig { return rig{room} })
}
