package birjson

import (
	"fmt"
	"strings"
	"testing"
)

// long makes a module whose text fills many batches: names of its own,
// dependencies near and far, loops that span batches, operands and texts.
// bad has further members of some rows.
func long(n int, bad map[int]string) string {
	row := 0
	plain := func(to int) []string {
		var list []string
		for ; row < to; row++ {
			text := fmt.Sprintf(`{"opcode":"TensorTensor","name":"n%d","engine":"DVE","op":"add","weight":%d,`, row, row%7)
			if row > 3 {
				text += fmt.Sprintf(`"dependencies":[["n%d","Flow"],["n%d","Anti"],["n%d",3]],`, row-1, row-3, row/2)
			}
			if x := bad[row]; x != "" {
				text += x + ","
			}
			list = append(list, text+fmt.Sprintf(`"ins":[{"kind":"physical_ap","dtype":"bfloat16","ap":[[2048,128],[1,%d]],"offset":%d,"memref":"s","memsetref":"s_set"}],"outs":[]}`,
				1+row%64, row%100))
		}
		return list
	}
	// The loop's own members come behind its blocks, as sorted keys have it; in
	// the list of names it is the row before them.
	loop := func(trips int, body func() []string) string {
		row++
		name := fmt.Sprintf("n%d", row-1)
		return `{"opcode":"Loop","blocks":[{"name":"body","instructions":[` + strings.Join(body(), ",\n") +
			fmt.Sprintf(`]}],"name":"%s","LoopAxis":{"lb":0,"stride":1,"ub":%d}}`, name, trips)
	}
	list := plain(n / 3)
	list = append(list, loop(5, func() []string {
		return append(plain(n/2), loop(3, func() []string { return plain(2 * n / 3) }))
	}))
	list = append(list, plain(n)...)
	return `{"functions":[{"name":"f","allocations":[` + loc("s", `"SB"`, 0, 128, 4096, 0, 0) + "],\n\"blocks\":[{\"name\":\"b\",\"instructions\":[\n" +
		strings.Join(list, ",\n") + "]}]}]}"
}

func TestManyBatches(t *testing.T) {
	const n = 9000
	text := long(n, map[int]string{40: `"loop_carried_dependencies":["n8900"]`})
	if len(text) < 5*batchText {
		t.Fatalf("%d bytes are too few batches", len(text))
	}
	one, err := readText(t, text, 1)
	if err != nil {
		t.Fatal(err)
	}
	if one.Instr.Len() != n || one.Blocks.Len() != 3 || one.Edges.Preds.Len() == 0 {
		t.Fatalf("%d instructions, %d blocks", one.Instr.Len(), one.Blocks.Len())
	}
	for _, jobs := range []int{2, 3, 8} {
		m, err := readText(t, text, jobs)
		if err != nil {
			t.Fatal(err)
		}
		if diff := moduleDiff(one, m); diff != "" {
			t.Fatalf("%d goroutines: %s", jobs, diff)
		}
	}
	if err := checkRoundTrip(one); err != nil {
		t.Fatal(strings.SplitN(err.Error(), "\n", 2)[0])
	}
}

// Whatever the number of goroutines, the error told is the first in the text.
func TestFirstError(t *testing.T) {
	const n = 9000
	for _, c := range []struct {
		bad  map[int]string
		want string
	}{
		{map[int]string{8000: `"engine_id":01`, 5000: `"scheduled_start":-1`, 8500: `"debug":}`}, "instruction n5000: scheduled_start: -1"},
		{map[int]string{8990: `"engine":"Warp"`, 100: `"loop_carried_dependencies":["nowhere"]`}, "instruction n8990: engine"},
		{map[int]string{2: `"loop_carried_dependencies":["nowhere"]`, 7000: `"dependencies":[["n7001","Flow"]]`}, `instruction n2 depends on "nowhere"`},
		{map[int]string{7000: `"name":"n12"`}, "two instructions of one function are called n12"},
	} {
		var msgs []string
		for _, jobs := range []int{1, 2, 5} {
			_, err := readText(t, long(n, c.bad), jobs)
			if err == nil {
				t.Fatalf("%v: no error", c.bad)
			}
			msgs = append(msgs, err.Error())
		}
		if msgs[0] != msgs[1] || msgs[0] != msgs[2] || !strings.Contains(msgs[0], c.want) {
			t.Errorf("%v: %q", c.bad, msgs)
		}
	}
}
