"""The embedder that runs an ONNX model in this process."""

from souvenir.models.embedding.onnx_embedder import OnnxEmbedder

__all__ = ["OnnxEmbedder"]
