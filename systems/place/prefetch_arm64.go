package place

// prefetchFrom is the number of rows from which asking for times ahead pays:
// fewer fit the caches.
const prefetchFrom = 1 << 16

// prefetchTimes asks the memory for the times that n edges point to.
//
//go:noescape
func prefetchTimes(words *uint32, n int, arrive *pair)
