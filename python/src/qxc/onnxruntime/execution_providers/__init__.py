"""As onnxruntime.quantization.execution_providers: configurations for runtimes."""
