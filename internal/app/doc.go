// Package app puts tutti together: New makes every part from a configuration, Start runs them in order, Stop takes
// them down in the opposite order. It is the only package that sees everything; nothing but cmd/tutti and the
// packages below it (demo, bench) may import it.
package app
