"""Measuring mechanisms: does this one keep its metric?"""
