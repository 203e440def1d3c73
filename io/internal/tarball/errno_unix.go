//go:build unix

package tarball

import "syscall"

// errNotDir is the error of looking below a file; nothing can exist there.
var errNotDir error = syscall.ENOTDIR
