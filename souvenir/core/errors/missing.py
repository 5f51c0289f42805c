"""Errors of objects that do not exist, or are not visible to the caller."""

from __future__ import annotations

from souvenir.core.errors.base import SouvenirError


class NotFound(SouvenirError):
    code = "not_found"
    status = 404


class MemoryNotFound(NotFound):
    """:param memory_id: As the caller wrote it: the number, or its short text form."""

    code = "memory_not_found"

    def __init__(self, memory_id: int | str) -> None:
        super().__init__(f"Memory ID {memory_id} not found")
        self.memory_id = memory_id


class FactNotFound(NotFound):
    code = "fact_not_found"

    def __init__(self, fact_id: int | str) -> None:
        super().__init__(f"Fact ID {fact_id} not found")
        self.fact_id = fact_id


class TagNotFound(NotFound):
    code = "tag_not_found"

    def __init__(self, tag: str) -> None:
        super().__init__(f"No memory has the tag {tag!r}; list the tags that are used")
        self.tag = tag


class FeedbackNotFound(NotFound):
    code = "feedback_not_found"

    def __init__(self, feedback_id: int) -> None:
        super().__init__(f"Feedback {feedback_id} not found; GET /search/feedback/history lists that of a memory")
        self.feedback_id = feedback_id


class FolderNotFound(NotFound):
    code = "folder_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"No memory has a source in {name!r}; GET /folders lists those that exist")
        self.name = name


class WebhookNotFound(NotFound):
    code = "webhook_not_found"

    def __init__(self, webhook_id: str) -> None:
        super().__init__(f"Webhook {webhook_id!r} not found; GET /webhooks lists those that exist")
        self.webhook_id = webhook_id


class EntityNotFound(NotFound):
    code = "entity_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"Entity with name {name} not found; make it with create_entities first")
        self.name = name


class BackupNotFound(NotFound):
    code = "backup_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Backup {name!r} not found; GET /backups and the folders in DATA_DIR/backups are those that exist"
        )
        self.name = name


class RemoteBackupNotFound(NotFound):
    """:param name: None if there is no backup at all."""

    code = "remote_backup_not_found"

    def __init__(self, name: str | None) -> None:
        which = "There is no backup" if name is None else f"There is no backup {name!r}"
        super().__init__(f"{which} in the bucket; GET /sync/snapshots lists those that exist")
        self.name = name


class KeyNotFound(NotFound):
    code = "key_not_found"

    def __init__(self, key_id: str) -> None:
        super().__init__(f"API key {key_id!r} not found; GET /api/keys lists those that exist")
        self.key_id = key_id


class JobNotFound(NotFound):
    code = "job_not_found"

    def __init__(self, job_id: str) -> None:
        super().__init__(f"Job {job_id!r} not found; GET /jobs lists those that exist")
        self.job_id = job_id


class AgentNotFound(NotFound):
    code = "agent_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"Agent {name!r} not found; make it with POST /agents")
        self.name = name


class UserNotFound(NotFound):
    code = "user_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"User {name!r} not found; GET /agents/NAME/users lists those that exist")
        self.name = name


class SessionNotFound(NotFound):
    code = "session_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"Session {name!r} not found; GET /sessions/AGENT lists those that exist")
        self.name = name


class MessageNotFound(NotFound):
    code = "message_not_found"

    def __init__(self, uid: str) -> None:
        super().__init__(f"Message {uid!r} not found; GET /messages/AGENT lists those that exist")
        self.uid = uid


class ConceptNotFound(NotFound):
    """:param concept: Its id, or the name as the caller wrote it."""

    code = "concept_not_found"

    def __init__(self, concept: int | str) -> None:
        super().__init__(f"Concept {concept!r} not found; GET /agents/NAME/concepts lists those that exist")
        self.concept = concept


class TopicNotFound(NotFound):
    code = "topic_not_found"

    def __init__(self, topic_id: int) -> None:
        super().__init__(f"Topic {topic_id} not found; GET /agents/NAME/topics lists those that exist")
        self.topic_id = topic_id


class BlockNotFound(NotFound):
    code = "block_not_found"

    def __init__(self, label: str) -> None:
        super().__init__(f"Block {label!r} not found; GET /memory-blocks/AGENT lists those that exist")
        self.label = label


class PreferenceNotFound(NotFound):
    code = "preference_not_found"

    def __init__(self, key: str) -> None:
        super().__init__(f"Preference {key!r} not found; GET /preferences/AGENT lists those that exist")
        self.key = key
