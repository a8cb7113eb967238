package app_test

import (
	"tutti/internal/app"
)

// engine is the index that a world runs on, seen from outside.
type engine interface {
	// url is the engine's address in the configuration, "" for the embedded one.
	url() string
	// replace puts a spoilt engine in the place of the configured one, where an address cannot.
	replace(opts *app.Options)
	// documents returns every document of the world's alias as stored.
	documents(w *world) map[string][]byte
	// setDown makes the engine unreachable, or reachable again. The world must be spoilt.
	setDown(down bool)
	// spoil lets the faults of the world's rates happen, or stops them.
	spoil(on bool)
	// faults counts the faults that happened, whole is those of a whole request, items those of single documents.
	faults() (whole, items int64)
	// largestBulk is the size of the largest bulk request that the engine was sent, where that can be seen.
	largestBulk() (bytes int64, known bool)
}
