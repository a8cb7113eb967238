package app_test

import (
	"tutti/internal/app"
)

// engine is the index of a world.
type engine interface {
	// url returns the engine's address in the configuration, "" for the embedded one.
	url() string
	// openSearch reports whether the engine is an OpenSearch, which has other types of fields.
	openSearch() bool
	// runtimeFields reports whether mappings can have runtime fields.
	runtimeFields() bool
	// replace sets Options.Index to a faulty engine that has no address.
	replace(opts *app.Options)
	// documents returns every document of the world's alias as stored.
	documents(w *world) map[string][]byte
	// setDown makes the engine unreachable, or reachable again. The settings must be faulty.
	setDown(down bool)
	// injectFaults starts or stops the faults of settings.rates.
	injectFaults(on bool)
	// faults returns the number of faults: whole those of a whole request, items those of single documents.
	faults() (whole, items int64)
	// largestBulk returns the size of the largest bulk request that the engine received, if known.
	largestBulk() (bytes int64, known bool)
}
