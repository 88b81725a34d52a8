"""What can be wrong for a caller of the training monitor, each with what to do about it."""

from __future__ import annotations

from midwatch.streams.errors import MidwatchError, ServiceUnreachable


class JobNotFound(MidwatchError):
    """The head knows no such job."""

    @classmethod
    def of(cls, job: str, head: str) -> JobNotFound:
        return cls(
            f"job not found: {job}",
            where=head,
            remedy="verify that the head's name is correct, and that `ray job list` on it shows the job",
        )


class PodNotFound(MidwatchError):
    """The Kubernetes cluster has no such pod in this namespace."""


class CheckpointNotFound(MidwatchError):
    """No complete checkpoint lies in the directory."""

    @classmethod
    def of(cls, directory: str, reasons: tuple[str, ...] = ()) -> CheckpointNotFound:
        more = f": {'; '.join(reasons)}" if reasons else ""
        return cls(
            f"no complete checkpoint{more}",
            where=directory,
            remedy="verify that the path is correct, that the training saves in a known form, "
            "such as step_100/ with a link `latest`, and that you may read the directory",
        )


class AccessDenied(MidwatchError):
    """The head, kubectl or a directory refuses us."""

    @classmethod
    def of(cls, what: str, where: str) -> AccessDenied:
        return cls(
            f"permission denied: {what}",
            where=where,
            remedy="ensure that kubectl is configured for this cluster, that you have access to its "
            "namespace, and that RAY_AUTH_TOKEN holds the token of a head which asks for one",
        )


class HeadUnreachable(ServiceUnreachable):
    """The head gives no usable answer, so what it does is unknown."""


class JobStillRuns(MidwatchError):
    """The job that is to be resumed has not ended. A second start beside it would be a duplicate."""
