//go:build unix

package tarball

import "syscall"

// errNotDir is what looking below a file gives; nothing can exist there.
var errNotDir error = syscall.ENOTDIR
