// Package fieldvalue says which values of a field a segment stores, and in what form: what Elasticsearch calls the indexing of a type. It
// owns the reading of one value by the parameters of its field, and the checks of the values that only this engine reads; it knows
// nothing of rows and columns.
//
// The Form of a field follows from its type, its Rule from its parameters too. A value becomes one or more texts, or a key (query.Key);
// a range becomes the text of its two ends. Check is for the values of ranges and points while a document is written.
//
// A new type of field is a row of internal/filter/fieldtype; only if its values are stored like those of no other type does it need a
// Form, in FormOf, which the column builder of the segment then adds. A new parameter is read in RuleOf. It may import the filter's
// meaning (internal/filter/query), internal/index/document and internal/index/mapping.
package fieldvalue
