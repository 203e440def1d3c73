// Package nki turns the record of an NKI kernel into a module of engine
// instructions. A record says what the kernel asks for; everything that the
// vendor's compiler decides is decided here, as an option, and noted where it
// is a guess:
//
//   - expand writes loops out and gives every tile of every iteration a number;
//   - instructions without an engine go to the one with the least work so far;
//   - tiles get addresses: fresh memory while there is some, then the hole that
//     fits best and has been free longest; tiles that do not fit are counted as
//     spills and placed behind the end;
//   - dependencies follow from bytes (systems/deps);
//   - the order is that of the time-aware scheduler (systems/sched, policy 3).
//
// Matmuls form accumulation groups by first write, zeros are written only
// where something reads them, a broadcast over partitions is a product with
// ones, a transpose on the PE a product with an identity.
package nki
