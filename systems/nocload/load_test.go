package nocload

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"perfsim/io/tenstorrent/noctrace"
)

func load(t *testing.T, chip string, events ...string) *Report {
	t.Helper()
	x, err := noctrace.Read(strings.NewReader("[" + strings.Join(events, ",") + "]"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Load("trace", x, chip)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// links lists the links of a report: network, place, direction and bytes.
func links(r *Report) []string {
	var out []string
	for _, l := range r.Links {
		out = append(out, fmt.Sprintf("%d %d,%d %s %d", l.NoC, l.X, l.Y, l.To, l.Bytes))
	}
	slices.Sort(out)
	return out
}

// TestWays lays single transfers by hand.
func TestWays(t *testing.T) {
	t.Parallel()
	const at = `"proc":"BRISC","timestamp":1,"num_bytes":64,`
	for _, c := range []struct {
		name, event string
		want        []string
	}{
		{"network 0 goes right, then down", at + `"type":"WRITE_","noc":"NOC_0","sx":1,"sy":1,"dx":3,"dy":2`, []string{"0 1,1 right 64", "0 2,1 right 64", "0 3,1 down 64"}},
		{"network 1 goes up, then left", at + `"type":"WRITE_","noc":"NOC_1","sx":1,"sy":1,"dx":0,"dy":0`, []string{"1 1,0 left 64", "1 1,1 up 64"}},
		{"around the edges of a Wormhole, 10 by 12", at + `"type":"WRITE_","noc":"NOC_0","sx":9,"sy":11,"dx":0,"dy":0`, []string{"0 0,11 down 64", "0 9,11 right 64"}},
		{"and the other way", at + `"type":"WRITE_","noc":"NOC_1","sx":0,"sy":0,"dx":9,"dy":11`, []string{"1 0,0 up 64", "1 0,11 left 64"}},
		{"data of a read comes back", at + `"type":"READ","noc":"NOC_0","sx":3,"sy":2,"dx":1,"dy":1`, []string{"0 1,1 right 64", "0 2,1 right 64", "0 3,1 down 64"}},
		{"to itself", at + `"type":"READ","noc":"NOC_0","sx":3,"sy":2,"dx":3,"dy":2`, nil},
		{"a rectangle takes every link once", at + `"type":"WRITE_MULTICAST","noc":"NOC_0","sx":1,"sy":1,"mcast_start_x":2,"mcast_start_y":2,"mcast_end_x":3,"mcast_end_y":3`,
			[]string{"0 1,1 right 64", "0 2,1 down 64", "0 2,1 right 64", "0 2,2 down 64", "0 3,1 down 64", "0 3,2 down 64"}},
	} {
		if got := links(load(t, "wormhole", "{"+c.event+"}")); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestSums: two writes of 600 bytes over one link in 100 cycles are 12 bytes a
// cycle, 40 % of the 30 that a link carries.
func TestSums(t *testing.T) {
	t.Parallel()
	r := load(t, "",
		`{"proc":"BRISC","op_name":"Add","run_host_id":7,"timestamp":100,"num_bytes":600,"type":"WRITE_","noc":"NOC_0","sx":1,"sy":1,"dx":2,"dy":1}`,
		`{"proc":"BRISC","op_name":"Add","run_host_id":7,"timestamp":200,"num_bytes":600,"type":"WRITE_","noc":"NOC_0","sx":1,"sy":1,"dx":2,"dy":1}`,
		`{"proc":"BRISC","op_name":"Add","run_host_id":7,"timestamp":150,"num_bytes":9,"type":"FABRIC_UNICAST_WRITE","noc":"NOC_0","sx":1,"sy":1,"fabric_send":{"hops":2}}`)
	if r.Chip != "wormhole" || !r.Guessed || r.Transfers != 3 || r.Bytes != 1209 || r.Fabric != 1 || r.Unrouted != 1 {
		t.Errorf("%+v", r)
	}
	if len(r.Links) != 1 || *r.Links[0].Utilization != 0.4 || r.Links[0].Transfers != 2 {
		t.Errorf("links %+v", r.Links)
	}
	n := r.Networks[0]
	if n.Span != 100 || n.Bytes != 1200 || n.LinkBytes != 1200 || n.Links != 1 || *n.Most != 0.4 || *n.Mean != 0.4/240 {
		t.Errorf("network %+v, mean %v", n, *n.Mean)
	}
	if !slices.Equal(r.Ops, []Op{{"Add", 7, 0, 3, 1209}}) {
		t.Errorf("ops %+v", r.Ops)
	}
	// A place that only a Blackhole has.
	b := load(t, "", `{"proc":"BRISC","timestamp":1,"num_bytes":6,"type":"WRITE_","noc":"NOC_0","sx":16,"sy":2,"dx":0,"dy":2}`)
	if b.Chip != "blackhole" || b.Networks[0].Mean != nil || !slices.Equal(links(b), []string{"0 16,2 right 6"}) {
		t.Errorf("%s, %q", b.Chip, links(b))
	}
	x, err := noctrace.Read(strings.NewReader(`[{"timestamp":1,"sx":200,"sy":2}]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "wormhole", "n1"} {
		if _, err := Load("trace", x, name); err == nil {
			t.Errorf("%q holds a place 200, 2", name)
		}
	}
}
