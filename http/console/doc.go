// Package console serves the pages for people: what state the index is in, what runs, what failed and why, and a look into the
// catalogues. The pages are rendered on the server and work without script; they call the same ports as the handlers of the API.
package console
