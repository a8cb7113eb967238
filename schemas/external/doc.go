// Package external validates values of an analysis by calls to external services, as the options of an analysis type name them: a URL
// template and a JSON path to the values. It calls only allowed hosts, and public addresses only.
package external
