// Package nki reads records of NKI kernels and makes them: it starts the
// user's python3 with an embedded package that stands in for the API, runs the
// kernel on shape descriptions and reads what it recorded.
package nki
