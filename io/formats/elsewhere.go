package formats

import (
	"bytes"
	"encoding/binary"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"perfsim/io/format"
	"perfsim/io/internal/proto"
)

// elsewhere says what to do with an input that begins with head and that no
// importer reads: which other command reads it, or how to make something of it
// that is read. packed names the compression around it. "" where nothing is
// known.
func elsewhere(name, packed string, head []byte) string {
	has := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }
	line, _, _ := bytes.Cut(head, []byte("\n"))
	file := shellWord(name)
	switch {
	case has("BZh") && len(head) > 10:
		return "compressed with bzip2: unpack it first (bunzip2 -k " + file + ", or bzip2 -dc " + file + " | perfsim run -)"
	case has("\xfd7zXZ\x00"):
		return "compressed with xz: unpack it first (unxz -k " + file + ", or xz -dc " + file + " | perfsim run -)"
	case has("7z\xbc\xaf\x27\x1c"):
		return "a 7z archive: extract the file to read first (7z x " + file + ")"
	case has("\x04\x22\x4d\x18"):
		return "compressed with lz4: unpack it first (lz4 -d " + file + ")"
	case has("]\x00\x00") && len(head) > 13:
		return "compressed with lzma: unpack it first (unlzma -k " + file + ")"
	case packed != "" && (has("\x1f\x8b") || has("\x28\xb5\x2f\xfd")):
		return "compressed twice: unpack it once first (" + packed + " -dc " + file + " | perfsim run -)"
	case has("PAR1"):
		return "a Parquet file: perfsim writes such tables and reads none; give the profile's JSON or the trace that it was made of"
	case has("SQLite format 3\x00"):
		return "an SQLite database (Nsight Systems?): export a Chrome or Kineto trace in JSON instead"
	case has("NTFF") || strings.HasSuffix(name, ".ntff"):
		return "a Neuron device trace (NTFF): make JSON of it first: neuron-profile view --output-format json --output-file profile.json -n FILE.neff -s " + file
	case isNEFF(head) && packed != "":
		return "a NEFF compressed with " + packed + ": unpack it first, then give it to perfsim neff info"
	case isNEFF(head):
		return "a NEFF: perfsim neff info " + file + " reads it"
	case isOpsTable(line):
		return "an ops table: perfsim profile " + file + " reads it"
	case isNetlist(string(head)):
		return "a Buda netlist: perfsim netlist " + file + " reads it"
	case isMachine(string(head)):
		return "a machine description: give it with --machine " + file
	case bytes.Contains(head, []byte(`"perfsim_metric_store"`)) || bytes.Contains(head, []byte(`"backend::`)) || bytes.Contains(head, []byte(`"sg0000"`)):
		return "a metric store: perfsim metrics " + file + " reads it"
	case bytes.Contains(head, []byte(`"total_run_time"`)):
		return "a benchmark record: perfsim bench compare reads it"
	case isPerfetto(head):
		return "a Perfetto trace (.pftrace): make Chrome JSON of it first: traceconv json " + file + " trace.json"
	}
	return ""
}

// isOpsTable reports whether line is the header of a table of operators of a
// Tenstorrent device.
func isOpsTable(line []byte) bool {
	return bytes.Contains(line, []byte("OP CODE")) || bytes.Contains(line, []byte("OP_CODE")) || bytes.Contains(line, []byte("OP NAME,"))
}

// isNEFF reports whether head is the header of a NEFF: package version 1 or 2
// and a header size of 1024.
func isNEFF(head []byte) bool {
	return len(head) >= 1024 && binary.LittleEndian.Uint64(head)-1 <= 1 && binary.LittleEndian.Uint64(head[8:]) == 1024
}

// isMachine looks for the sections of a machine description in YAML.
func isMachine(text string) bool {
	text = "\n" + text
	return strings.Contains(text, "\nname:") && strings.Contains(text, "\narch:") && strings.Contains(text, "\nclock:")
}

// isNetlist looks for the sections of a netlist in YAML.
func isNetlist(text string) bool {
	text = "\n" + text
	n := 0
	for _, s := range []string{"\ndevices:", "\nqueues:", "\ngraphs:", "\nprograms:", "\nfused_ops:"} {
		if strings.Contains(text, s) {
			n++
		}
	}
	return n >= 2
}

// isPerfetto reports whether head is the beginning of a Perfetto trace: packets
// (field 1) with the timestamp, sequence id or sequence flags of a TracePacket
// among their fields.
func isPerfetto(head []byte) bool {
	packets := proto.Of(head)
	for range 4 {
		if !packets.Next() || packets.Num != 1 || packets.Type != protowire.BytesType {
			return false
		}
		f := proto.Of(packets.Data)
		for f.Next() {
			if f.Type == protowire.VarintType && (f.Num == 8 || f.Num == 10 || f.Num == 13) {
				return true
			}
		}
		if f.Err != nil {
			return false
		}
	}
	return false
}

// Advice says which command or tool reads src, for commands that read other
// things; "" where nothing is known.
func Advice(src *format.Source) string {
	if f, err := Find(src, ""); err == nil {
		return "a module or trace (" + f.Name + "): perfsim run " + shellWord(src.Name) + " and explain read it"
	}
	return elsewhere(src.Name, src.Packed, src.Head())
}
