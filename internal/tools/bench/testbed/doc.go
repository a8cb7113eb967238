// Package testbed runs what a benchmark measures: this and other servers and the stand-ins as processes, apps in this process, with their
// configuration, folders, names, memory and CPU time. It knows no benchmark.
package testbed
