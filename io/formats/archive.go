package formats

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"perfsim/io/format"
)

// What is looked at of an archive, to name a member that can be read: enough
// for the message and never long.
const (
	lookBytes   = 64 << 20
	lookMembers = 1000
)

// archiveError says that an input that no importer knows is an archive, and
// which of its members can be read once it is extracted; nil where it is none.
func archiveError(src *format.Source) error {
	head := src.Head()
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return fmt.Errorf("%s: a zip archive: extract the file to read first (unzip)", src.Name)
	case len(head) < 512 || string(head[257:262]) != "ustar":
		return nil
	}
	var first, known, as string // the first file, and the first that can be read
	packed := src.Packed        // by what the whole archive is
	files := 0
	r := tar.NewReader(io.LimitReader(src, lookBytes))
	for range lookMembers {
		h, err := r.Next()
		if err != nil {
			break // its end, damage, or the bound: what was seen will do
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if files++; files == 1 {
			first = h.Name
		}
		b, err := io.ReadAll(io.LimitReader(r, format.SniffLen))
		if err != nil {
			break
		}
		if as = recognise(b); as != "" {
			known = h.Name
			break
		}
	}
	unpack := "tar -xf " + shellWord(src.Name)
	if src.Name == "standard input" {
		unpack = strings.TrimSpace("tar -x " + map[string]string{"gzip": "-z", "zstd": "--zstd"}[packed])
	}
	switch {
	case known != "":
		return fmt.Errorf("%s: a tar archive, not a module: extract a member and give that, such as %s (%s): %s %s",
			src.Name, strconv.Quote(known), as, unpack, shellWord(known))
	case first != "":
		return fmt.Errorf("%s: a tar archive, not a module: a member must be extracted to be read, and none of the files looked at is of a known format (%d, the first %s)",
			src.Name, files, strconv.Quote(first))
	}
	return fmt.Errorf("%s: a tar archive without files", src.Name)
}

// recognise returns the name of the format of a document that begins with b,
// packed or not; "" for none.
func recognise(b []byte) string {
	s, err := format.FromBytes("member", b)
	if err != nil {
		return ""
	}
	defer s.Close()
	head := s.Head()
	for _, f := range importers() {
		if f.Sniff(head) {
			return f.Name
		}
	}
	return ""
}

// shellWord quotes a path for a shell where that is needed.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("_-./+:@,=", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	if strconv.Quote(s) != `"`+s+`"` {
		return strconv.Quote(s) // what a terminal should not be sent
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
