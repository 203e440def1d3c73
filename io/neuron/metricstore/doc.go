// Package metricstore is the back end's store of named numbers: what the
// passes report and what global_metric_store.json holds.
//
// An entry's key is (type, name, aggregation): the type is a string such as
// "backend::PostSchedEstLatency", the name almost always the module's, and the
// aggregation one of Sum, Average, Custom and None. Adding under a key that
// exists replaces the value, whatever the aggregation says; it takes effect
// only when the nested layout is written. Values are float, uint32, int64 or
// uint64.
//
// The documented store is global to the process; here it is a value that is
// passed around, so that two simulations in one process do not meet. It is
// safe for concurrent use. Which of two concurrent Adds under one key comes
// last is up to the callers: those who want repeatable files order them.
//
// Everything that is written is sorted, so that a store gives the same bytes
// always.
package metricstore

// File names, as the documented compiler has them.
const (
	GlobalFile     = "global_metric_store.json"     // written at the end of a compilation
	NEFFMember     = "MetricMetadata.json"          // the store in a NEFF; the name is conjectured
	TensorizerFile = "tensorizer_metric_store.json" // left by the front end, merged before the passes run
)
