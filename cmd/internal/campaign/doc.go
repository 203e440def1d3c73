// Package campaign holds the tests that try perfsim with mutated inputs of
// every format, failing file operations and kills. It has no code outside its
// tests. The long form is
//
//	go test -run Campaign -campaign 1h -timeout 3h ./cmd/internal/campaign
//
// and prints the table of docs/reliability.md; without the flag each test is
// short. Inputs are made from the seed that -campaign.seed gives, so that a
// finding comes again.
package campaign
