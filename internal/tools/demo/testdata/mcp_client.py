"""Connects the official Python client of the Model Context Protocol to a tutti, and lists, reads and calls all that it offers.

Arguments: the URL of /mcp, and the mode of the client: "auto" for the newest version of the protocol, "legacy" for the handshake of
earlier ones. Prints what it got as one JSON object.
"""

import asyncio
import json
import sys

import jsonschema
from mcp import Client


async def main(url, mode):
    async with Client(url, mode=mode) as client:
        answers = {"version": client.protocol_version, "server": client.server_info.name, "instructions": client.instructions}
        tools = (await client.list_tools()).tools
        for tool in tools:
            jsonschema.Draft202012Validator.check_schema(tool.input_schema)
            if not tool.annotations.read_only_hint or tool.annotations.destructive_hint:
                raise ValueError(f"{tool.name} is not marked as reading only")
        answers["tools"] = sorted(tool.name for tool in tools)
        answers["resources"] = {}
        for resource in (await client.list_resources()).resources:
            try:
                content = (await client.read_resource(resource.uri)).contents[0]
                answers["resources"][resource.uri] = json.loads(content.text)
            except Exception as error:  # of the protocol; its class depends on the version
                answers["resources"][resource.uri] = str(error)
        answers["templates"] = [t.uri_template for t in (await client.list_resource_templates()).resource_templates]

        schemas = {tool.name: tool.input_schema for tool in tools}

        async def call(name, arguments):
            """Calls a tool with arguments that fit its schema, and returns its structured result or the text of its error."""
            jsonschema.validate(arguments, schemas.get(name, {}))
            result = await client.call_tool(name, arguments)
            if result.is_error:
                return {"error": result.content[0].text}
            if json.loads(result.content[0].text) != result.structured_content:
                raise ValueError(f"{name}: the text is not the structured content")
            return result.structured_content

        answers["list_catalogues"] = await call("list_catalogues", {})
        answers["get_catalogue_fields"] = await call("get_catalogue_fields", {"catalogueId": "analyses"})
        answers["get_sqon_schema"] = await call("get_sqon_schema", {})
        clauses = [{"op": "in", "fieldName": "studyId", "value": ["PANC-CA"]}, {"op": "gt", "fieldName": "files.fileSize", "value": 0}]
        built = await call("build_sqon", {"catalogueId": "analyses", "clauses": clauses})
        answers["build_sqon"] = built
        query = {"catalogueId": "analyses", "fields": ["studyId", "files.fileName"], "facets": ["studyId", "files.fileSize"], "first": 3}
        answers["all"] = await call("execute_query", query)
        answers["filtered"] = await call("execute_query", query | {"sqon": built["sqon"], "sort": [{"fieldName": "updatedAt", "order": "desc"}]})
        answers["index_status"] = await call("index_status", {})

        answers["errors"] = {
            "unknown tool": await call("execute", {}),
            "unknown catalogue": await call("execute_query", {"catalogueId": "analysis-es"}),
            "failed catalogue": await call("execute_query", {"catalogueId": "expression"}),
            "broken sqon": await call("execute_query", {"catalogueId": "analyses", "sqon": {"op": "in", "content": {"fieldName": "study", "value": 1}}}),
            "clauses": await call("build_sqon", {"catalogueId": "analyses", "clauses": [{"op": "gt", "fieldName": "studyId", "value": 1}, {"op": "in", "fieldName": "studyID", "value": 1}]}),
        }
    print(json.dumps(answers))


asyncio.run(main(*sys.argv[1:]))
