package systems

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestOrderIsSound(t *testing.T) {
	for _, opt := range []Options{{}, {EnablePerfSim: true}, {Start: "perf_sim_at_end"}, {Skip: []string{"perf_sim_at_end"}, EnablePerfSim: true}} {
		s, err := order(opt)
		if err != nil {
			t.Error(err)
		}
		if len(s.Systems) == 0 {
			t.Errorf("%+v picks nothing", opt)
		}
	}
}

// The documented ordinals ascend, and perf_sim_package_pass is the last.
func TestPipelineOrdinals(t *testing.T) {
	all := Passes()
	if !slices.IsSortedFunc(all, func(a, b Pass) int { return a.Ordinal - b.Ordinal }) {
		t.Errorf("ordinals do not ascend")
	}
	if last := all[len(all)-1].Name; last != "perf_sim_package_pass" {
		t.Errorf("the last pass is %s", last)
	}
	var perfSim []int
	for _, p := range all {
		if p.Name == "perf_sim" {
			perfSim = append(perfSim, p.Ordinal)
		}
	}
	if !slices.Equal(perfSim, []int{88, 99}) {
		t.Errorf("perf_sim is at %v, want 88 and 99", perfSim)
	}
}

func TestPick(t *testing.T) {
	text := func(opt Options) string {
		p, err := pick(opt)
		if err != nil {
			return err.Error()
		}
		var s []string
		for _, x := range p {
			s = append(s, fmt.Sprint(x.Ordinal))
		}
		return strings.Join(s, " ")
	}
	for _, c := range []struct {
		opt      Options
		has, not string
	}{
		{Options{}, "106", "99"}, // perf_sim needs its flag, perf_sim_at_end none
		{Options{EnablePerfSim: true}, "88", "x"},
		{Options{EnablePerfSim: true, Skip: []string{"perf_sim"}}, "106", "88"},
		{Options{EnablePerfSim: true, Start: "perf_sim_at_end"}, "106", "99"},
		{Options{Only: []string{"perf_sim"}}, "88", "106"},
		{Options{Only: []string{"perf_sim", "perf_sim"}}, "88 99", "106"},
		{Options{Skip: []string{"nosuch"}}, "no pass is called", "x"},
	} {
		if got := text(c.opt); !strings.Contains(got, c.has) || strings.Contains(got, c.not) {
			t.Errorf("%+v picks %q: want %q in it and not %q", c.opt, got, c.has, c.not)
		}
	}
}

// Swapping cost and place must be found: the order check is what keeps the
// list honest.
func TestOrderCheckFindsASwap(t *testing.T) {
	s, err := order(Options{EnablePerfSim: true})
	if err != nil {
		t.Fatal(err)
	}
	c := slices.IndexFunc(s.Systems, func(x System) bool { return x.Name == "88.perf_sim/cost" })
	p := slices.IndexFunc(s.Systems, func(x System) bool { return x.Name == "88.perf_sim/place" })
	s.Systems[c], s.Systems[p] = s.Systems[p], s.Systems[c]
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), "before any system wrote it") {
		t.Errorf("error %v", err)
	}
}

// A pass whose inputs nothing makes says which passes make them and how to
// name them.
func TestMissingPassesAreNamed(t *testing.T) {
	for _, c := range []struct {
		opt  Options
		want string
	}{
		{Options{Only: []string{"metric_store"}}, "pass metric_store needs metrics, which perf_sim, post_sched, perf_sim_at_end make: run one of them before it (--pass perf_sim_at_end,metric_store)"},
		{Options{Start: "metric_store"}, "(--pass perf_sim_at_end,metric_store)"},
		{Options{Skip: []string{"perf_sim_at_end", "post_sched"}}, "(--pass perf_sim_at_end,metric_store)"},
		{Options{Skip: []string{"perf_sim_at_end"}}, ""}, // post_sched has counts to publish
		{Options{Only: []string{"metric_store", "perf_sim"}}, "only passes behind it make: name perf_sim_at_end before it"},
		{Options{Only: []string{"perf_sim_package_pass"}}, "needs traces"},
		{Options{Only: []string{"perf_sim_at_end", "metric_store"}}, ""},
	} {
		_, err := order(c.opt)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: error %v, want %q", c.opt, err, c.want)
		}
	}
}

// Registrations that share a name can be named apart by their ordinals.
func TestPassesByOrdinal(t *testing.T) {
	for _, c := range []struct {
		opt  Options
		want []int
	}{
		{Options{Only: []string{"perf_sim@99"}}, []int{99}},
		{Options{Only: []string{"perf_sim@99", "perf_sim"}}, []int{99, 88}},
		{Options{EnablePerfSim: true, Skip: []string{"perf_sim@88"}}, []int{74, 76, 92, 99, 106, 130, 131}},
		{Options{EnablePerfSim: true, Start: "perf_sim@99"}, []int{99, 106, 130, 131}},
		{Options{EnablePerfSim: true, Skip: []string{"perf_sim"}}, []int{74, 76, 92, 106, 130, 131}},
	} {
		passes, err := pick(c.opt)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, p := range passes {
			got = append(got, p.Ordinal)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v picks %v, want %v", c.opt, got, c.want)
		}
	}
	if _, err := pick(Options{Only: []string{"perf_sim@92"}}); err == nil || !strings.Contains(err.Error(), "perf_sim@88") || !strings.Contains(err.Error(), "perf_sim@99") {
		t.Errorf("error %v does not list the registrations", err)
	}
}
