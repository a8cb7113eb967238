// Package kinds counts the JSON kinds of the values of records at each path, and decides from the counts which kind a path has in an index
// that is made from them. It imports only internal/core, internal/index/document, internal/index/mapping and internal/base/jsontext.
package kinds
