# SPDX-License-Identifier: MIT
"""The pages' evidence: what is committed under bench/results/ and docs/lab-notes/, and what is written from it."""
