// Package oracle evaluates the requests of the search suites by testing every document. It reads the documents' JSON and the parsed filter; it
// shares neither query's lowering nor the engines' handling of values, so that it does not repeat their errors.
package oracle
