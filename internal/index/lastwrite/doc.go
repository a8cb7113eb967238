// Package lastwrite remembers when each index was last written. It must not import an engine.
package lastwrite
