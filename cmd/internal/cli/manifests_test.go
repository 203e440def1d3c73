package cli

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"perfsim/io/workq/shard"
)

// job is the part of the Kubernetes API batch/v1 Job that docs/sweep.md uses,
// field by field with the API's names: a field that the API does not have in
// that place, or a value of another type, fails to decode.
type job struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata"`
	Spec       struct {
		CompletionMode       string `yaml:"completionMode"`
		Completions          int32  `yaml:"completions"`
		Parallelism          int32  `yaml:"parallelism"`
		BackoffLimitPerIndex int32  `yaml:"backoffLimitPerIndex"`
		Template             struct {
			Spec struct {
				RestartPolicy string      `yaml:"restartPolicy"`
				Containers    []container `yaml:"containers"`
				Volumes       []struct {
					Name  string `yaml:"name"`
					Claim struct {
						Name string `yaml:"claimName"`
					} `yaml:"persistentVolumeClaim"`
				} `yaml:"volumes"`
			} `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
}

type metadata struct {
	Name string `yaml:"name"`
}

type container struct {
	Name      string   `yaml:"name"`
	Image     string   `yaml:"image"`
	Command   []string `yaml:"command"`
	Resources struct {
		Requests map[string]string `yaml:"requests"`
		Limits   map[string]string `yaml:"limits"`
	} `yaml:"resources"`
	VolumeMounts []struct {
		Name string `yaml:"name"`
		Path string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
}

// The API's rules for names and for amounts of cpu and memory.
var (
	labelRule    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	quantityRule = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$`)
)

// block returns the code block of docs/sweep.md after a heading.
func block(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/sweep.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n"+heading+"\n")
	_, rest, fence := strings.Cut(rest, "```")
	_, rest, line := strings.Cut(rest, "\n")
	code, _, end := strings.Cut(rest, "\n```")
	if !ok || !fence || !line || !end {
		t.Fatalf("docs/sweep.md has no code below %q", heading)
	}
	return code
}

// parses fails where words are no command line of perfsim, and returns the
// value of --shard.
func parses(t *testing.T, words []string) string {
	t.Helper()
	if len(words) < 2 || words[0] != "perfsim" {
		t.Fatalf("%q does not run perfsim", words)
	}
	c, rest, err := newRoot(words[1:]).Find(words[1:])
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil {
		err = c.ValidateArgs(c.Flags().Args())
	}
	if err != nil {
		t.Fatalf("%q: %v", words, err)
	}
	if x := c.Flags().Lookup("shard"); x != nil {
		return x.Value.String()
	}
	return ""
}

func TestKubernetesManifest(t *testing.T) {
	t.Parallel()
	var j job
	d := yaml.NewDecoder(strings.NewReader(block(t, "### Kubernetes")))
	d.KnownFields(true)
	if err := d.Decode(&j); err != nil {
		t.Fatal(err)
	}
	s, pod := j.Spec, j.Spec.Template.Spec
	if j.APIVersion != "batch/v1" || j.Kind != "Job" || !labelRule.MatchString(j.Metadata.Name) {
		t.Errorf("%s %s %q is no Job of batch/v1", j.APIVersion, j.Kind, j.Metadata.Name)
	}
	if s.CompletionMode != "Indexed" || s.Completions < 1 || s.Parallelism < 1 || s.Parallelism > s.Completions {
		t.Errorf("%q with %d completions, %d at a time", s.CompletionMode, s.Completions, s.Parallelism)
	}
	// backoffLimitPerIndex is for Indexed Jobs whose pods are never restarted.
	if pod.RestartPolicy != "Never" || s.BackoffLimitPerIndex < 1 {
		t.Errorf("restartPolicy %q with backoffLimitPerIndex %d", pod.RestartPolicy, s.BackoffLimitPerIndex)
	}
	var volumes []string
	for _, v := range pod.Volumes {
		if !labelRule.MatchString(v.Name) || v.Claim.Name == "" {
			t.Errorf("volume %+v", v)
		}
		volumes = append(volumes, v.Name)
	}
	if len(pod.Containers) != 1 {
		t.Fatalf("%d containers", len(pod.Containers))
	}
	c := pod.Containers[0]
	if !labelRule.MatchString(c.Name) || c.Image == "" {
		t.Errorf("container %q of image %q", c.Name, c.Image)
	}
	for _, amounts := range []map[string]string{c.Resources.Requests, c.Resources.Limits} {
		for what, amount := range amounts {
			if what != "cpu" && what != "memory" || !quantityRule.MatchString(amount) {
				t.Errorf("resource %s: %q", what, amount)
			}
		}
	}
	for _, m := range c.VolumeMounts {
		if !slices.Contains(volumes, m.Name) || !strings.HasPrefix(m.Path, "/") {
			t.Errorf("mount %+v of volumes %q", m, volumes)
		}
	}
	// Every index is a part, and together they are all.
	part, err := shard.Parse(parses(t, c.Command), func(name string) string {
		return map[string]string{"JOB_COMPLETION_INDEX": "0"}[name]
	})
	if err != nil || part != (shard.Shard{I: 1, N: int(s.Completions)}) {
		t.Errorf("index 0 is part %v (%v) of %d", part, err, s.Completions)
	}
}

func TestSlurmScript(t *testing.T) {
	t.Parallel()
	lines := strings.Split(block(t, "### Slurm"), "\n")
	if lines[0] != "#!/bin/bash" {
		t.Errorf("the script begins with %q", lines[0])
	}
	known := map[string]string{"job-name": `^[-a-z]+$`, "array": `^[0-9]+-[0-9]+$`, "cpus-per-task": `^[0-9]+$`, "mem": `^[0-9]+[KMGT]$`, "requeue": `^$`}
	array, commands := "", 0
	for _, line := range lines[1:] {
		option, ok := strings.CutPrefix(line, "#SBATCH --")
		if !ok {
			commands++
			word := strings.Fields(strings.NewReplacer(`"$SLURM_CPUS_PER_TASK"`, "2").Replace(line))
			first, last, _ := strings.Cut(array, "-")
			part, err := shard.Parse(parses(t, word), func(name string) string {
				return map[string]string{"SLURM_ARRAY_TASK_ID": last, "SLURM_ARRAY_TASK_MIN": first, "SLURM_ARRAY_TASK_COUNT": last, "SLURM_ARRAY_TASK_STEP": "1"}[name]
			})
			if err != nil || part.I != part.N {
				t.Errorf("the last task is part %v, %v", part, err)
			}
			continue
		}
		name, value, _ := strings.Cut(option, "=")
		rule, ok := known[name]
		if !ok || !regexp.MustCompile(rule).MatchString(value) {
			t.Errorf("sbatch has no option %q, or not with this value", line)
		}
		if commands > 0 {
			t.Errorf("%q stands behind the first command, where sbatch does not see it", line)
		}
		if name == "array" {
			array = value
		}
	}
	if commands != 1 {
		t.Errorf("%d commands", commands)
	}
}
