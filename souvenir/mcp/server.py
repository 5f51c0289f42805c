"""The MCP protocol, implemented with the official SDK: tools, resources and prompts, for clients of every version.

Stateless. The caller was authenticated before (`souvenir.mcp.endpoint`) and is in the request's state. A refusal by a
tool is a result with one sentence for the model; a refusal by the protocol is an error. Neither contains a stack trace
or internal text. Imported at the first request only.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial, wraps
from typing import Any, TypeVar

import structlog
from anyio import from_thread, to_thread
from mcp import types as wire
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.types.jsonrpc import jsonrpc_message_adapter
from pydantic import ValidationError
from starlette.requests import Request
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from souvenir import VERSION
from souvenir.access.audit import Denial
from souvenir.core.errors import Forbidden, SouvenirError
from souvenir.core.types import Role, Scope
from souvenir.mcp.endpoint import MAX_MESSAGE_BYTES
from souvenir.mcp.prompts import ServerPrompt, instructions_for, prompts_for
from souvenir.mcp.registry import may_call, no_such_tool, scope_for, tools_of
from souvenir.mcp.resources import TEMPLATES, Resources
from souvenir.mcp.tools import MAX_SHOWN_CHARS, Call, Tool
from souvenir.server.load_shedding import CostClass
from souvenir.server.metrics import Outcome
from souvenir.server.middleware import template_of
from souvenir.server.request_guards import (
    REMEMBERED,
    Needs,
    access_of,
    address_of,
    caller_of,
    most_found,
    require_access,
)
from souvenir.server.service import Service

Context = ServerRequestContext[Any, Request]
P = TypeVar("P")
R = TypeVar("R")

TEXT = "text/plain"

_WORK = "mcp_work"
"""The key in the state of a request for the flag that its tool has finished."""

log = structlog.get_logger(__name__)


class McpServer:
    """One running service as an MCP server."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._tools = tools_of(service.settings.mcp_tools)
        self._prompts = {prompt.name: prompt for prompt in prompts_for(service.settings.mcp_tools)}
        self._resources = Resources(service)
        self._server = self._made()
        max_bytes = min(service.settings.max_body_bytes, MAX_MESSAGE_BYTES)
        self._whole, self._streamed = (
            StreamableHTTPSessionManager(
                self._server, json_response=whole, stateless=True, max_request_body_size=max_bytes
            )
            for whole in (True, False)
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """A context manager; `handle` may be called while it is open."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._whole.run())
            await stack.enter_async_context(self._streamed.run())
            yield

    async def handle(self, scope: AsgiScope, receive: Receive, send: Send, *, streams: bool) -> None:
        """Answer a request, as JSON or as a stream of events; returns when its tool has finished."""
        try:
            await (self._streamed if streams else self._whole).handle_request(scope, receive, send)
        finally:
            work: asyncio.Event | None = scope["state"].get(_WORK)
            if work is not None:
                await work.wait()

    @staticmethod
    def is_message(sent: Mapping[str, Any]) -> bool:
        """True if an object is a JSON-RPC 2.0 message."""
        try:
            message = jsonrpc_message_adapter.validate_python(sent, by_name=False)
        except ValidationError:
            return False
        # A request with a null id would be treated as a notification and never be answered.
        return not (isinstance(message, wire.JSONRPCNotification) and "id" in sent)

    def cost_of(self, message: Mapping[str, Any]) -> CostClass:
        """The cost class of a message."""
        match message:
            case {"method": "tools/call", "params": {"name": str(name)}} if name in self._tools:
                return self._tools[name].cost
            case {"method": "prompts/get", "params": {"name": str(name)}} if name in self._prompts:
                return self._prompts[name].cost
        return CostClass.LIGHT

    def wants_progress(self, message: Mapping[str, Any]) -> bool:
        """True if the message calls a tool and requests its progress."""
        match message:
            case {"method": "tools/call", "params": {"_meta": {"progressToken": str() | int()}}}:
                return True
        return False

    def _made(self) -> Server[Any]:
        schemas = {name: tool.input_schema for name, tool in self._tools.items()}
        server: Server[Any] = Server(
            "souvenir",
            title="Souvenir",
            version=VERSION,
            instructions=instructions_for(self._service.settings.mcp_tools),
            get_tool_input_schema=schemas.get,
            on_list_tools=_guarded(self._list_tools),
            on_call_tool=_guarded(self._call_tool),
            on_list_resources=_guarded(self._list_resources),
            on_list_resource_templates=_guarded(self._list_templates),
            on_read_resource=_guarded(self._read_resource),
            on_list_prompts=_guarded(self._list_prompts),
            on_get_prompt=_guarded(self._get_prompt),
            on_completion=_guarded(self._complete),
        )
        # The SDK's own tracing records names that clients send; we trace requests ourselves.
        server.middleware.clear()
        return server

    async def _list_tools(self, context: Context, _: wire.PaginatedRequestParams | None) -> wire.ListToolsResult:
        """List the tools that the caller may call, on one page."""
        request = _request(context)
        caller, levels, namespace = caller_of(request), access_of(request), request.state.namespace
        chosen = [tool for tool in self._tools.values() if may_call(tool, caller, levels, namespace)]
        return wire.ListToolsResult(tools=[_described(tool) for tool in chosen])

    async def _call_tool(self, context: Context, params: wire.CallToolRequestParams) -> wire.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(wire.INVALID_PARAMS, no_such_tool(params.name))
        request = _request(context)
        try:
            levels = access_of(request)
            scope = scope_for(tool, caller_of(request), levels, request.state.namespace)
            call = Call(self._service, scope, partial(_report, context.session), most_found(request), levels)
            answer = await _in_thread(request, partial(tool.answer, call, params.arguments or {}))
        except SouvenirError as error:
            self._note(request, tool, error)
            return _tool_error(error.message)
        except Exception:  # the boundary of a tool, where unexpected errors are reported
            request.state.error_code = "internal"
            log.exception("tool_failed", tool=tool.name)
            self._service.metrics.tool_called(tool.name, Outcome.FAILED)
            return _tool_error(_internal(request))
        self._service.metrics.tool_called(tool.name, Outcome.OK)
        request.state.operation, request.state.arguments = tool.name, params.arguments or {}
        content = wire.TextContent(type="text", text=tool.text(answer))
        return wire.CallToolResult(content=[content], structured_content=answer)

    async def _list_resources(
        self, context: Context, params: wire.PaginatedRequestParams | None
    ) -> wire.ListResourcesResult:
        cursor = None if params is None else params.cursor
        shown, behind = await _in_thread(
            _request(context), partial(self._resources.page, _reading(context, REMEMBERED), cursor)
        )
        resources = [
            wire.Resource(uri=one.uri, name=one.name, title=one.title, description=one.description, mime_type=TEXT)
            for one in shown
        ]
        return wire.ListResourcesResult(resources=resources, next_cursor=behind)

    async def _list_templates(
        self, _: Context, __: wire.PaginatedRequestParams | None
    ) -> wire.ListResourceTemplatesResult:
        templates = [
            wire.ResourceTemplate(
                uri_template=one.uri, name=one.name, title=one.title, description=one.description, mime_type=TEXT
            )
            for one in TEMPLATES
        ]
        return wire.ListResourceTemplatesResult(resource_templates=templates)

    async def _read_resource(self, context: Context, params: wire.ReadResourceRequestParams) -> wire.ReadResourceResult:
        text = await _in_thread(
            _request(context), partial(self._resources.read, _reading(context, REMEMBERED), params.uri)
        )
        return wire.ReadResourceResult(contents=[wire.TextResourceContents(uri=params.uri, mime_type=TEXT, text=text)])

    async def _list_prompts(self, _: Context, __: wire.PaginatedRequestParams | None) -> wire.ListPromptsResult:
        return wire.ListPromptsResult(prompts=[_prompt_described(prompt) for prompt in self._prompts.values()])

    async def _get_prompt(self, context: Context, params: wire.GetPromptRequestParams) -> wire.GetPromptResult:
        prompt = self._prompts.get(params.name)
        if prompt is None:
            raise MCPError(
                wire.INVALID_PARAMS, f"There is no prompt {params.name[:MAX_SHOWN_CHARS]!r}; see prompts/list"
            )
        call = Call(self._service, _reading(context, prompt.needs), most_results=most_found(_request(context)))
        text = await _in_thread(_request(context), partial(prompt.message, call, params.arguments or {}))
        message = wire.PromptMessage(role="user", content=wire.TextContent(type="text", text=text))
        return wire.GetPromptResult(description=prompt.description, messages=[message])

    async def _complete(self, context: Context, params: wire.CompleteRequestParams) -> wire.CompleteResult:
        """Complete arguments of resource templates; the arguments of prompts are free text."""
        values: Sequence[str] = ()
        if isinstance(params.ref, wire.ResourceTemplateReference):
            uri, argument = params.ref.uri, params.argument
            complete = partial(
                self._resources.completions, _reading(context, REMEMBERED), uri, argument.name, argument.value
            )
            values = await _in_thread(_request(context), complete)
        return wire.CompleteResult(completion=wire.Completion(values=list(values), total=len(values), has_more=False))

    def _note(self, request: Request, tool: Tool[Any], error: SouvenirError) -> None:
        """Record the call in the log, the metrics and the audit log, like an answer of a route."""
        request.state.error_code = error.code
        outcome = Outcome.REFUSED if error.status < 500 else Outcome.FAILED
        self._service.metrics.tool_called(tool.name, outcome)
        if isinstance(error, Forbidden):
            actor, namespace = caller_of(request).actor, request.state.namespace
            route, address = template_of(request.scope), address_of(request)
            denial = Denial(actor, namespace, request.method, route, error.status, address, error.code)
            self._service.audit.deny(denial)


def _guarded(handle: Callable[[Context, P], Awaitable[R]]) -> Callable[[Context, P], Awaitable[R]]:
    """Wrap a handler so that it raises the protocol's errors, which reveal no more than those of routes."""

    @wraps(handle)
    async def guarded(context: Context, params: P) -> R:
        try:
            return await handle(context, params)
        except MCPError:
            raise
        except SouvenirError as error:
            _request(context).state.error_code = error.code
            code = wire.INVALID_PARAMS if error.status < 500 else wire.INTERNAL_ERROR
            raise MCPError(code, error.message) from error
        except Exception as error:  # the boundary of a request, where unexpected errors are reported
            log.exception("mcp_request_failed", method=context.method)
            raise MCPError(wire.INTERNAL_ERROR, _internal(_request(context))) from error

    return guarded


async def _in_thread(request: Request, work: Callable[[], R]) -> R:
    """Run work that cannot be interrupted, registered with its request until it has finished."""
    through = request.scope["state"][_WORK] = asyncio.Event()
    try:
        return await to_thread.run_sync(work)
    finally:
        through.set()


def _report(session: ServerSession, done: float, total: float | None = None, message: str | None = None) -> None:
    """Report progress from the thread of a tool."""
    from_thread.run(session.report_progress, done, total, message)


def _request(context: Context) -> Request:
    if context.request is None:
        raise LookupError("every message comes with a request")
    return context.request


def _internal(request: Request) -> str:
    return f"Internal server error; the service's log has its cause under the request id {request.state.request_id}"


def _reading(context: Context, needed: Needs) -> Scope:
    """Return the scope of a reading caller.

    :raises AccessLimited: If the caller lacks a needed access level.
    """
    request = _request(context)
    require_access(request, needed)
    return caller_of(request).scope(Role.READ_ONLY, request.state.namespace)


def _tool_error(sentence: str) -> wire.CallToolResult:
    return wire.CallToolResult(content=[wire.TextContent(type="text", text=sentence)], is_error=True)


def _prompt_described(prompt: ServerPrompt) -> wire.Prompt:
    wanted = prompt.argument
    arguments = (
        [] if wanted is None else [wire.PromptArgument(name=wanted.name, description=wanted.description, required=True)]
    )
    return wire.Prompt(name=prompt.name, title=prompt.title, description=prompt.description, arguments=arguments)


def _described(tool: Tool[Any]) -> wire.Tool:
    reads = tool.is_reader
    return wire.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=wire.ToolAnnotations(
            title=tool.title,
            read_only_hint=reads,
            destructive_hint=tool.destructive,
            idempotent_hint=reads or tool.idempotent,
            open_world_hint=False,
        ),
    )
