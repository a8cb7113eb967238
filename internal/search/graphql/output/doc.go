// Package output writes the JSON of GraphQL responses: values, errors with their paths, and warnings.
package output
