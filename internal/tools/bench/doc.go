// Package bench measures tutti's performance on this machine, and prints it next to the target and the machine's own noise. It
// contains no constants of another machine: a ratio compares runs made side by side. It uses the app over HTTP, like any client;
// repositories, and engines that respond at once, run in separate processes when their CPU time must not count as tutti's. Only
// cmd/tutti-bench imports it.
package bench
