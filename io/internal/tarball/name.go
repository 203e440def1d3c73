package tarball

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// Limits that common filesystems put on a name; checked before anything is
// written, because a rename that fails half-way leaves half an archive.
const (
	maxNameBytes      = 4096
	maxComponentBytes = 255
)

// SafeName returns the relative slash-separated path that a member may be
// extracted to, or says why there is none: an absolute name, one that climbs
// out by "..", one that names no file, or one that the filesystem cannot hold.
// Leading "./" and doubled or trailing slashes are dropped. A backslash and a
// drive letter are refused everywhere, so that an archive is safe or unsafe on
// all systems alike.
func SafeName(name string) (string, error) {
	switch {
	case name == "":
		return "", errors.New("empty name")
	case strings.ContainsRune(name, 0):
		return "", errors.New("name holds a NUL")
	case strings.ContainsRune(name, '\\'):
		return "", errors.New("name holds a backslash")
	case name[0] == '/':
		return "", errors.New("absolute name")
	case len(name) > maxNameBytes:
		return "", fmt.Errorf("name of %d bytes", len(name))
	case len(name) >= 2 && name[1] == ':' && (name[0]|0x20) >= 'a' && (name[0]|0x20) <= 'z':
		return "", errors.New("name begins with a drive letter")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", errors.New(`name climbs out of the folder by ".."`)
		}
		if len(part) > maxComponentBytes {
			return "", fmt.Errorf("name with a component of %d bytes", len(part))
		}
	}
	clean := path.Clean(name)
	if clean == "." {
		return "", errors.New("name of the folder itself")
	}
	return clean, nil
}
