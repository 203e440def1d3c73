//go:build !unix

package tarball

import "io/fs"

// errNotDir has no error of its own here: looking below a file says "not
// found".
var errNotDir error = fs.ErrNotExist
