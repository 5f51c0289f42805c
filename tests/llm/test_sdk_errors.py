"""Every exception that the SDKs make public is mapped to one of ours. A release with a new one fails here."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from pydantic import SecretStr

from souvenir.errors import LLMError, LLMPromptTooLong, LLMRejected, LLMUnavailable
from souvenir.llm.anthropic_wire import AnthropicWire
from souvenir.llm.connections import Connections
from souvenir.llm.endpoint import Endpoint
from souvenir.llm.failures import error_of
from souvenir.llm.openai_wire import OpenAIWire
from souvenir.llm.wire import Wire
from souvenir.settings import ExtractProvider, Settings

REQUEST = httpx2.Request("POST", "http://vendor/v1/messages")

OF_ANTHROPIC: dict[type[LLMError], str] = {
    LLMUnavailable: """
        APIConnectionError APIError APIResponseValidationError APITimeoutError APIWebhookValidationError AnthropicError
        CMEKContextUnavailableError CMEKKeyUnreachableError ConflictError CredentialsError DeadlineExceededError
        GatewayTimeoutError HTTPNotImplementedError IdentityTokenFileError InternalServerError OverloadedError
        RampLimitExceededError RateLimitError RequestTimeoutError RetryableError ServiceUnavailableError
        WorkloadIdentityError
    """,
    LLMRejected: """
        APIStatusError AuthenticationError BadRequestError CMEKKeyDisabledError CMEKKeyNetworkBlockedError
        ClaudeCodeKeyCreatorNotMemberError ClaudeCodeVersionTooOldError ClientClosedRequestError
        ContractSpendLimitReachedError EnforcedSpendLimitReachedError LinkedOrganizationBillingUnavailableError
        LinkedOrganizationSpendLimitReachedError NotFoundError OrganizationOnHoldError OrganizationTypeNotSupportedError
        ParentOrganizationRequiredError PaymentRequiredError PermissionDeniedError PreconditionFailedError
        RequestBodyEncodingInvalidError RequestBodyEncodingUnsupportedError RequestHeaderFieldsTooLargeError
        SandboxEgressRestrictedError UnprocessableEntityError
    """,
    LLMPromptTooLong: "ContentTooLargeError RequestBodyTooLargeAfterDecodingError RequestTooLargeError",
}
OF_OPENAI: dict[type[LLMError], str] = {
    LLMUnavailable: """
        APIConnectionError APIError APIResponseValidationError APITimeoutError ConflictError
        ContentFilterFinishReasonError InternalServerError LengthFinishReasonError OpenAIError RateLimitError
        WebSocketConnectionClosedError WebSocketQueueFullError
    """,
    LLMRejected: """
        APIStatusError AuthenticationError BadRequestError NotFoundError OAuthError PermissionDeniedError
        UnprocessableEntityError
    """,
}
OF_WEBHOOKS = {"InvalidWebhookSignatureError"}
"""Not raised by a question; it is no error of the SDK's own tree."""


def public(module: ModuleType) -> dict[str, type[Exception]]:
    found = {name: value for name, value in dict(vars(module)).items() if not name.startswith("_")}
    return {name: value for name, value in found.items() if inspect.isclass(value) and issubclass(value, Exception)}


def below(error: type[Exception]) -> Iterator[type[Exception]]:
    for child in error.__subclasses__():
        yield child
        yield from below(child)


def instance(error: type[Exception], status_error: type[Exception]) -> Exception:
    """As the SDK would raise it: with an answer, where it is about one."""
    made = error.__new__(error, "it went wrong")
    if issubclass(error, status_error):
        status = getattr(error, "status_code", None) or (500 if "Server" in error.__name__ else 418)
        code = getattr(error, "__annotations__", {}).get("error_code", "")
        response = httpx2.Response(status, request=REQUEST)
        vars(made).update(status_code=status, response=response, message=code, type=None, error_code=None)
        vars(made).update(code=None, param=None)
    return made


def wire_of(provider: ExtractProvider) -> tuple[Wire, Endpoint]:
    endpoint = Endpoint.of(Settings(extract_api_key=SecretStr("k")), provider)
    client = Connections("http://127.0.0.1").client
    make = AnthropicWire if provider is ExtractProvider.ANTHROPIC else OpenAIWire
    return make(endpoint, client), endpoint


@pytest.mark.parametrize(
    ("module", "provider", "base", "expected"),
    [
        (anthropic, ExtractProvider.ANTHROPIC, anthropic.AnthropicError, OF_ANTHROPIC),
        (openai, ExtractProvider.OPENAI, openai.OpenAIError, OF_OPENAI),
    ],
    ids=["anthropic", "openai"],
)
def test_every_public_exception_is_mapped(module, provider, base, expected):
    wire, endpoint = wire_of(provider)
    names = {name: ours for ours, listed in expected.items() for name in listed.split()}
    assert set(public(module)) - OF_WEBHOOKS == set(names), "say what a new one means, and that an old one is gone"
    for name, error in public(module).items():
        if name not in OF_WEBHOOKS:
            assert issubclass(error, wire.errors), name
            made = error_of(wire.failure(instance(error, module.APIStatusError)), endpoint)
            assert type(made) is names[name], name


@pytest.mark.parametrize("provider", [ExtractProvider.ANTHROPIC, ExtractProvider.OPENAI])
def test_every_other_exception_of_a_tree_is_mapped_as_its_parent_is(provider):
    wire, endpoint = wire_of(provider)
    sdk: Any = anthropic if provider is ExtractProvider.ANTHROPIC else openai
    for error in below(wire.errors[0]):
        assert isinstance(error_of(wire.failure(instance(error, sdk.APIStatusError)), endpoint), LLMError)
    assert httpx2.HTTPError in wire.errors
