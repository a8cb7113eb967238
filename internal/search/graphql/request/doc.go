// Package request parses and validates the operations of clients: size limits, GraphQL's validation rules, and variables.
package request
